# ncu.awk - the CSV pages that ncu prints for an op's kernels as rows of one file, without the process and the host:
#
#     awk -v op=scan_diag -v shape='length=128' -v origin=COMMIT,DEVICE,DRIVER -f tests/device/ncu.awk FILE
#
# ncu quotes every cell, and the names of kernels have commas in them.
BEGIN { FS = "\",\"" }
{ sub(/^"/, ""); sub(/"\r?$/, "") }
$1 == "ID" {
    for (i = 1; i <= NF; i++) column[$i] = i
    next
}
!("Metric Value" in column) || $1 !~ /^[0-9]+$/ { next }
{
    printf "%s,%s,%s", origin, op, shape
    n = split("Kernel Name;Block Size;Grid Size;Section Name;Metric Name;Metric Unit;Metric Value", names, ";")
    for (i = 1; i <= n; i++) printf ",\"%s\"", $column[names[i]]
    printf "\n"
}
