/* A closed-loop load generator: each of CONNECTIONS sends its next request when it has its answer.
 *
 *     load PORT PATH CONNECTIONS SECONDS FIRST WRONG BODY...
 *
 * The files BODY are the requests of one session, in order; after the last one a connection begins the next
 * session, whose number is one higher than the last begun (FIRST is that of the first). In PATH and in bodies
 * @num@ stands for the session's number, and @id0@ .. @id9@ for the id of the tool call that answered the
 * session's request 0 .. 9. It gives up, with exit code 1, at an answer whose status is not 200, that contains
 * WRONG, ends early or lacks an id that is asked for.
 *
 * When SECONDS are over it waits for the answers that are still due: a slow proxy may have taken most of the time
 * for the first ones. Prints one JSON object: how many answers came in all ("answered"), and the seconds until the
 * last; its own CPU seconds; microseconds at percentiles 50, 95, 99 and 100 of what came before the time was up:
 * whole answers ("answer"), first chunks of streams ("first") and the way of every chunk from the provider
 * ("transit"), which are stamped "t=" and 20 digits of CLOCK_MONOTONIC in nanoseconds.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static const uint64_t PATIENCE_NS = 20000000000ULL; /* For answers that are due when the time is up. */
enum { BUFFER = 1 << 18, EVENTS = 256, IDS = 10, ID_SIZE = 64, STAMP = 22 };

struct template {
    char *text;
    size_t size;
};

struct connection {
    int fd, step;
    long session;
    char ids[IDS][ID_SIZE];
    uint64_t sent_at;
    size_t have, scanned; /* Bytes of the answer that came, and that were looked through for stamps. */
    int chunks;
    char in[BUFFER + 1], out[BUFFER];
};

struct samples {
    uint64_t *values;
    size_t count, room;
};

static struct template *bodies;
static int steps, port;
static const char *path, *wrong;
static long next_session;
static struct samples answers, firsts, transits;
static long answered;        /* With those that came when the time was up. */
static uint64_t answered_at; /* When the last of them came. */
static int closing; /* The time is up: what still comes is waited for, and not counted. */

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void give_up(const char *what, struct connection *connection) {
    fprintf(stderr, "%s %.*s\n", what, (int)(connection->have < 500 ? connection->have : 500), connection->in);
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

static void add(struct samples *samples, uint64_t value) {
    if (closing) return;
    if (samples->count == samples->room) {
        samples->room = samples->room ? 2 * samples->room : 1 << 16;
        samples->values = realloc(samples->values, samples->room * sizeof value);
        if (!samples->values) fail("realloc");
    }
    samples->values[samples->count++] = value;
}

/* Copies a template, its marks replaced; gives the size of what was written. */
static size_t fill(char *out, const char *text, size_t size, struct connection *connection) {
    const char *end = text + size, *mark;
    char *at = out;
    while ((mark = memchr(text, '@', end - text))) {
        at = mempcpy(at, text, mark - text);
        text = mark + 5;
        if (end - mark >= 5 && !memcmp(mark, "@num@", 5)) {
            at += sprintf(at, "%ld", connection->session);
        } else if (end - mark >= 5 && !memcmp(mark, "@id", 3) && mark[4] == '@') {
            at = stpcpy(at, connection->ids[mark[3] - '0']);
        } else {
            *at++ = '@';
            text = mark + 1;
        }
    }
    return (char *)mempcpy(at, text, end - text) - out;
}

static void send_next(struct connection *connection) {
    static char body[BUFFER], address[1024];
    struct template *template = &bodies[connection->step];
    if (connection->step == 0) connection->session = next_session++;
    size_t size = fill(body, template->text, template->size, connection);
    address[fill(address, path, strlen(path), connection)] = 0;
    int head = snprintf(connection->out, BUFFER,
                        "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
                        "Authorization: Bearer sk-benchmark\r\nUser-Agent: load/1\r\nContent-Length: %zu\r\n\r\n",
                        address, port, size);
    memcpy(connection->out + head, body, size);
    connection->have = connection->scanned = connection->chunks = 0;
    connection->sent_at = now_ns();
    if (send(connection->fd, connection->out, head + size, MSG_NOSIGNAL) != (ssize_t)(head + size)) fail("send");
}

static void connect_to_proxy(struct connection *connection, int epoll_fd) {
    int on = 1;
    struct sockaddr_in address = {AF_INET, htons(port), {htonl(INADDR_LOOPBACK)}, {0}};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    connection->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(connection->fd, (struct sockaddr *)&address, sizeof address)) fail("connect");
    setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    fcntl(connection->fd, F_SETFL, O_NONBLOCK);
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, connection->fd, &event)) fail("epoll_ctl");
}

/* Notes the stamps in what came since the last look. A stamp begins with a nought: 10^19 ns are 300 years. */
static void read_stamps(struct connection *connection, uint64_t now) {
    char *end = connection->in + connection->have, *at = connection->in + connection->scanned;
    while ((at = memmem(at, end - at, "t=0", 3)) && end - at >= STAMP) {
        uint64_t sent = strtoull(at + 2, NULL, 10);
        if (!connection->chunks++) add(&firsts, now - connection->sent_at);
        add(&transits, now - sent);
        at += STAMP;
        connection->scanned = at - connection->in;
    }
}

/* Whether all of the answer is there: by its length, or its last chunk. */
static int is_whole(struct connection *connection) {
    char *end = strstr(connection->in, "\r\n\r\n"), *length;
    if (!end) return 0;
    *end = 0;
    length = strcasestr(connection->in, "\r\ncontent-length:");
    *end = '\r';
    if (length)
        return connection->have >= end + 4 - connection->in + strtoul(length + 17, NULL, 10);
    return !strcmp(connection->in + connection->have - 5, "0\r\n\r\n");
}

/* Keeps the id of the first tool call, for later requests. */
static void keep_id(struct connection *connection) {
    char *calls = strstr(connection->in, "\"tool_calls\""), *id = calls ? strstr(calls, "\"id\"") : NULL;
    char *kept = connection->ids[connection->step];
    kept[0] = 0;
    if (id) sscanf(id + 4, " : \"%63[^\"]", kept);
}

static int needs_id(int step) {
    char mark[6];
    snprintf(mark, sizeof mark, "@id%d@", step);
    for (int later = step + 1; later < steps; later++)
        if (strstr(bodies[later].text, mark)) return 1;
    return 0;
}

static int is_right(struct connection *connection) {
    if (strncmp(connection->in, "HTTP/1.1 200", 12) || (*wrong && strstr(connection->in, wrong))) return 0;
    if (connection->step >= IDS) return 1;
    keep_id(connection);
    return connection->ids[connection->step][0] || !needs_id(connection->step);
}

/* Takes what came; whether the connection's next request may be sent. */
static int on_data(struct connection *connection) {
    ssize_t got = recv(connection->fd, connection->in + connection->have, BUFFER - connection->have, 0);
    uint64_t now = now_ns();
    if (got < 0 && errno == EAGAIN) return 0;
    if (got <= 0) give_up("the connection was closed after", connection);
    connection->have += got;
    connection->in[connection->have] = 0;
    read_stamps(connection, now);
    if (!is_whole(connection)) return 0;
    answered++;
    answered_at = now;
    add(&answers, now - connection->sent_at);
    if (!is_right(connection)) give_up("a wrong answer:", connection);
    connection->step = (connection->step + 1) % steps;
    return 1;
}

static void print_cpu(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    printf(", \"cpu\": %.6f", used.ru_utime.tv_sec + used.ru_stime.tv_sec
                                 + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6);
}

static void run(int connections, double seconds) {
    struct connection *all = calloc(connections, sizeof *all);
    struct epoll_event events[EVENTS];
    int epoll_fd = epoll_create1(0);
    for (int i = 0; i < connections; i++) connect_to_proxy(&all[i], epoll_fd);
    uint64_t start = now_ns(), end = start + seconds * 1e9, limit = end + (end - start) + PATIENCE_NS;
    int busy = connections;
    for (int i = 0; i < connections; i++) send_next(&all[i]);
    while (busy && now_ns() < limit) {
        closing = now_ns() >= end && answers.count;
        int count = epoll_wait(epoll_fd, events, EVENTS, 20);
        for (int i = 0; i < count; i++) {
            struct connection *connection = events[i].data.ptr;
            if (!on_data(connection)) continue;
            if (!closing) {
                send_next(connection);
            } else {
                close(connection->fd);
                busy--;
            }
        }
    }
    printf("{\"answered\": %ld, \"seconds\": %.6f", answered, (answered_at - start) / 1e9);
    print_cpu();
}

static int compare(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void print_samples(const char *name, struct samples *samples) {
    static const double percentiles[] = {0.50, 0.95, 0.99, 1.00};
    qsort(samples->values, samples->count, sizeof *samples->values, compare);
    printf(", \"%s\": [", name);
    for (int i = 0; samples->count && i < 4; i++)
        printf("%s%.1f", i ? ", " : "", samples->values[(size_t)((samples->count - 1) * percentiles[i])] / 1e3);
    printf("]");
}

static struct template read_body(const char *name) {
    struct template template = {malloc(BUFFER), 0};
    FILE *file = fopen(name, "r");
    if (!file) fail(name);
    template.size = fread(template.text, 1, BUFFER / 2, file);
    template.text[template.size] = 0;
    fclose(file);
    return template;
}

int main(int argc, char **argv) {
    if (argc < 8) return fprintf(stderr, "usage: load PORT PATH CONNECTIONS SECONDS FIRST WRONG BODY...\n"), 2;
    port = atoi(argv[1]);
    path = argv[2];
    next_session = atol(argv[5]);
    wrong = argv[6];
    steps = argc - 7;
    bodies = calloc(steps, sizeof *bodies);
    for (int i = 0; i < steps; i++) bodies[i] = read_body(argv[7 + i]);
    run(atoi(argv[3]), atof(argv[4]));
    print_samples("answer", &answers);
    print_samples("first", &firsts);
    print_samples("transit", &transits);
    printf("}\n");
    return 0;
}
