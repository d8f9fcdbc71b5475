/* check_fetch.c - `lrnn data fetch` against a server on the loopback device, which breaks off, goes on, and has files
 * of another content. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/status.h"
#include "tests/lib/program.h"
#include "tests/testing.h"

/* The requests that the server has seen, in memory that both processes share. */
static struct seen {
    int requests;
    long from; /* where the last one wanted to begin */
} * seen;

static pid_t server;
static int port;
static char *archive; /* aclImdb_v1.tar.gz, of the texts in tests/data */
static size_t archive_bytes;

static void send_all(int to, const char *bytes, size_t n) {
    while (n > 0) {
        ssize_t sent = send(to, bytes, n, MSG_NOSIGNAL);
        if (sent <= 0) return;
        bytes += sent;
        n -= (size_t)sent;
    }
}

/* One request: of /whole/ and /broken/ the archive, of which /broken/ sends a half to who asks from the beginning;
 * of /other/ ten bytes under any name; anything else is missing. */
static void answer(int to) {
    char request[4096] = "", head[256];
    size_t got = 0;
    for (ssize_t n; !strstr(request, "\r\n\r\n") && got < sizeof request - 1; got += (size_t)n) {
        n = recv(to, request + got, sizeof request - 1 - got, 0);
        if (n <= 0) return;
        request[got + (size_t)n] = 0;
    }
    const char *range = strstr(request, "Range: bytes=");
    size_t from = range ? strtoul(range + strlen("Range: bytes="), NULL, 10) : 0;
    bool other = strncmp(request, "GET /other/", 11) == 0, broken = strncmp(request, "GET /broken/", 12) == 0;
    const char *bytes = other ? "0123456789" : archive;
    size_t size = other ? 10 : archive_bytes;
    seen->requests++;
    seen->from = (long)from;
    if (!other && !broken && strncmp(request, "GET /whole/", 11) != 0) {
        static const char missing[] = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        send_all(to, missing, sizeof missing - 1);
        return;
    }
    if (from > size) from = size;
    int n = range ? snprintf(head, sizeof head, "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes %zu-%zu/%zu\r\n",
                             from, size - 1, size)
                  : snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\n");
    n += snprintf(head + n, sizeof head - (size_t)n, "Content-Length: %zu\r\nConnection: close\r\n\r\n", size - from);
    send_all(to, head, (size_t)n);
    send_all(to, bytes + from, broken && !range ? size / 2 : size - from);
}

static void serve(int listener) {
    for (;;) {
        int to = accept(listener, NULL, NULL);
        if (to < 0) continue;
        answer(to);
        shutdown(to, SHUT_RDWR);
        close(to);
    }
}

static void begin(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    char text[SCRATCH_BYTES + 100];
    program_begin_without_data();
    snprintf(text, sizeof text, "tar -czf %s/a.tar.gz -C tests/data/imdb aclImdb", program_folder);
    ck_assert_int_eq(system(text), 0);
    snprintf(text, sizeof text, "%s/a.tar.gz", program_folder);
    archive = slurp(text, &archive_bytes);
    seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert(seen != MAP_FAILED && listener >= 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(listener, 8), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &bytes), 0);
    port = ntohs(address.sin_port);
    server = fork();
    if (server == 0) serve(listener);
    close(listener);
}

static void end(void) {
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    free(archive);
    munmap(seen, sizeof *seen);
    program_end();
}

/* Fetches a set from a folder of the server. */
static void fetch(const char *set, const char *folder, int status, const char *words) {
    char arguments[200];
    snprintf(arguments, sizeof arguments, "data fetch %s --mirror http://127.0.0.1:%d/%s", set, port, folder);
    expect_status(run(arguments), status, arguments);
    expect_text(status ? err : out, words, arguments);
}

START_TEST(a_set_is_fetched_unpacked_and_imported) {
    fetch("imdb", "whole", 0, "20 training, 0 validation and 8 test texts");
    expect_status(run("data verify imdb"), 0, "verify");
    fetch("imdb", "whole/", 0, "20 training"); /* it is there, and nobody is asked again */
    ck_assert_int_eq(seen->requests, 1);
}
END_TEST

START_TEST(a_download_that_broke_off_goes_on_where_it_stopped) {
    fetch("imdb", "broken", ST_FAIL, "the same command goes on");
    ck_assert(seen->from == 0 && is_in_folder("files/imdb/aclImdb_v1.tar.gz.part"));
    fetch("imdb", "broken", 0, "20 training, 0 validation and 8 test texts");
    ck_assert_int_eq(seen->from, (long)archive_bytes / 2);
    ck_assert(!is_in_folder("files/imdb/aclImdb_v1.tar.gz.part"));
}
END_TEST

START_TEST(files_of_another_content_are_refused_and_removed) {
    fetch("mnist", "other", ST_DATA,
          "has 10 bytes with SHA-256 84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882, expected");
    ck_assert(!is_in_folder("files/mnist/train-images-idx3-ubyte.gz") &&
              !is_in_folder("files/mnist/train-images-idx3-ubyte.gz.part"));
}
END_TEST

START_TEST(what_cannot_be_fetched_is_said_with_a_way_out) {
    fetch("mnist", "none", ST_FAIL, "the server does not give");
    expect_status(run("data fetch mnist --mirror http://127.0.0.1:1"), ST_FAIL, "no server");
    expect_text(err, "no network, or no such server: curl: (7)", "no server");
    expect_text(err, "`lrnn data import mnist FOLDER`", "no server");
    fetch("aan", "whole", ST_USAGE, "holds far more; fetch and unpack it yourself");
    fetch("mnits", "whole", ST_USAGE, "did you mean 'mnist'");
    expect_status(run("data fetch"), ST_USAGE, "no name");
}
END_TEST

Suite *check_fetch(void);
Suite *check_fetch(void) {
    Suite *suite = suite_create("fetch");
    TCase *tests = tcase_create("fetch");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, a_set_is_fetched_unpacked_and_imported);
    tcase_add_test(tests, a_download_that_broke_off_goes_on_where_it_stopped);
    tcase_add_test(tests, files_of_another_content_are_refused_and_removed);
    tcase_add_test(tests, what_cannot_be_fetched_is_said_with_a_way_out);
    suite_add_tcase(suite, tests);
    return suite;
}
