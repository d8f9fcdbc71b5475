#!/usr/bin/python3
"""Writes sample_0.png with PIL (python3-pil 9.4.0 of Debian 12): the pixels of
tests/data/pathfinder32/curv_contour_length_14/imgs/2/sample_0.png, which ../make.py packs by hand, in the rows' filters
that PIL chooses:

    cd tests/data/pil && /usr/bin/python3 make.py
"""
from PIL import Image

image = Image.new("L", (32, 32))
image.putdata([(row * 5 + column * 11) % 256 for row in range(32) for column in range(32)])
image.save("sample_0.png")
