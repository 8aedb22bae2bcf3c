/* Load for a UDP responder: keeps a fixed number of requests in flight on several sockets.
 *
 *   datagram_load ADDRESS PORT SOCKETS IN_FLIGHT SECONDS OFFSET PAYLOAD_IN_HEX
 *
 * Each request is the payload with its number in the first four octets; a reply must carry that
 * number at OFFSET, in order of sending, and be no longer than the request. Prints one line:
 * sent received lost wrong seconds. Used by reflector_rate.py.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { BATCH = 32, LARGEST = 1500, SOCKETS = 256 };

struct flow {
    int fd;
    uint32_t next, expected;
    long in_flight;
    double heard;
};

static struct flow flows[SOCKETS];
static unsigned char out[BATCH][LARGEST], in[BATCH][LARGEST];
static struct mmsghdr sending[BATCH], receiving[BATCH];
static struct iovec out_parts[BATCH], in_parts[BATCH];
static long sent, received, lost, wrong;
static size_t size, offset;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void prepare(const char *hex)
{
    size = strlen(hex) / 2;
    for (int i = 0; i < BATCH; i++) {
        for (size_t j = 0; j < size; j++) {
            unsigned value;
            sscanf(hex + 2 * j, "%2x", &value);
            out[i][j] = (unsigned char)value;
        }
        out_parts[i] = (struct iovec){out[i], size};
        in_parts[i] = (struct iovec){in[i], LARGEST};
        sending[i].msg_hdr = (struct msghdr){.msg_iov = &out_parts[i], .msg_iovlen = 1};
        receiving[i].msg_hdr = (struct msghdr){.msg_iov = &in_parts[i], .msg_iovlen = 1};
    }
}

static void send_up_to(struct flow *f, long most)
{
    while (f->in_flight < most) {
        int count = most - f->in_flight < BATCH ? (int)(most - f->in_flight) : BATCH;
        for (int i = 0; i < count; i++) {
            uint32_t number = htonl(f->next + (uint32_t)i);
            memcpy(out[i], &number, 4);
        }
        int done = sendmmsg(f->fd, sending, (unsigned)count, 0);
        if (done <= 0)
            return;
        f->next += (uint32_t)done;
        f->in_flight += done;
        sent += done;
    }
}

static int receive(struct flow *f)
{
    int count = recvmmsg(f->fd, receiving, BATCH, MSG_DONTWAIT, NULL);
    for (int i = 0; i < count; i++) {
        uint32_t number;
        memcpy(&number, in[i] + offset, 4);
        int32_t skipped = (int32_t)(ntohl(number) - f->expected);
        if (receiving[i].msg_len > size || receiving[i].msg_len < offset + 4 || skipped < 0) {
            wrong++;
            continue;
        }
        lost += skipped;
        f->in_flight -= skipped + 1;
        f->expected += (uint32_t)skipped + 1;
        received++;
    }
    return count > 0 ? count : 0;
}

int main(int argc, char **argv)
{
    if (argc != 8)
        return 2;
    int count = atoi(argv[3]);
    long most = atol(argv[4]) / count;
    double seconds = atof(argv[5]);
    offset = (size_t)atol(argv[6]);
    prepare(argv[7]);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[2]))};
    inet_pton(AF_INET, argv[1], &to.sin_addr);
    struct pollfd waiting[SOCKETS];
    double began = now();
    for (int i = 0; i < count; i++) {
        int room = 1 << 22;
        flows[i] = (struct flow){.fd = socket(AF_INET, SOCK_DGRAM, 0), .heard = began};
        setsockopt(flows[i].fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
        if (connect(flows[i].fd, (struct sockaddr *)&to, sizeof to))
            return 1;
        waiting[i] = (struct pollfd){.fd = flows[i].fd, .events = POLLIN};
        send_up_to(&flows[i], most);
    }
    double ends = began + seconds, last = began;
    while ((last = now()) < ends) {
        poll(waiting, (nfds_t)count, 20);
        for (int i = 0; i < count; i++) {
            while (receive(&flows[i]) == BATCH)
                ;
            if (flows[i].in_flight < most)
                flows[i].heard = last;
            else if (last - flows[i].heard > 0.5) { /* all of them are gone */
                lost += flows[i].in_flight;
                flows[i].expected = flows[i].next;
                flows[i].in_flight = 0;
            }
            send_up_to(&flows[i], most);
        }
    }
    for (double quiet = now(); now() - quiet < 0.3;) {
        int heard = 0;
        for (int i = 0; i < count; i++)
            heard += receive(&flows[i]);
        if (heard)
            quiet = now();
    }
    for (int i = 0; i < count; i++)
        lost += flows[i].in_flight;
    printf("%ld %ld %ld %ld %f\n", sent, received, lost, wrong, last - began);
    return 0;
}
