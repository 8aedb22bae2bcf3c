/* A path of many hops behind a TUN device, for benchmarks/trace_rate.py.
 *
 *   hops DEVICE HOPS MICROSECONDS
 *
 * Whatever IPv4 packet comes out of the device has run out of TTL at router 10.64.<ttl>.<n> (n: last
 * octet of its destination) and gets a time exceeded, or has reached its destination at hop HOPS and
 * gets an echo reply, port unreachable or RST. The answer to hop k takes k times MICROSECONDS. Of
 * each hop limit the answers leave in order, so one queue for each will do. At the end (SIGTERM) it
 * says how many packets came and how many answers left: who has lost something can be told.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define MOST_HOPS 64
#define SLOTS 8192
#define BYTES 600

struct waiting {
    int64_t due;
    int length;
    uint8_t data[BYTES];
};
static struct waiting *queues[MOST_HOPS + 1];
static unsigned first[MOST_HOPS + 1], end[MOST_HOPS + 1];
static volatile sig_atomic_t over;

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static uint32_t add(const uint8_t *p, int n, uint32_t sum) {
    for (; n > 1; p += 2, n -= 2) sum += p[0] << 8 | p[1];
    return n ? sum + (p[0] << 8) : sum;
}

static void put_sum(uint8_t *at, uint32_t sum) {
    while (sum >> 16) sum = (sum & 0xFFFF) + (sum >> 16);
    sum = ~sum & 0xFFFF;
    at[0] = sum >> 8, at[1] = sum;
}

/* IP header of an answer of `length` octets behind it, in place. */
static int head(uint8_t *out, const uint8_t *in, int length, int protocol, int ttl) {
    memset(out, 0, 20);
    out[0] = 0x45, out[2] = (length + 20) >> 8, out[3] = length + 20, out[8] = ttl, out[9] = protocol;
    memcpy(out + 16, in + 12, 4);
    return length + 20;
}

static int answer(uint8_t *out, const uint8_t *in, int length, int hops, int at) {
    const uint8_t *body = in + 20;
    if (at == hops && in[9] == 1) { /* echo reply */
        int size = head(out, in, length - 20, 1, 64);
        memcpy(out + 12, in + 16, 4);
        memcpy(out + 20, body, length - 20);
        out[20] = out[22] = out[23] = 0;
        put_sum(out + 22, add(out + 20, length - 20, 0));
        return size;
    }
    if (at == hops && in[9] == 6) { /* reset */
        int size = head(out, in, 20, 6, 64);
        uint32_t sequence = (body[4] << 24 | body[5] << 16 | body[6] << 8 | body[7]) + 1;
        memcpy(out + 12, in + 16, 4);
        memset(out + 20, 0, 20);
        memcpy(out + 20, body + 2, 2), memcpy(out + 22, body, 2);
        for (int i = 0; i < 4; i++) out[28 + i] = sequence >> (24 - 8 * i);
        out[32] = 0x50, out[33] = 0x14;
        put_sum(out + 36, add(out + 20, 20, add(out + 12, 8, 6 + 20)));
        return size;
    }
    int quoted = length < 548 ? length : 548;
    int size = head(out, in, 8 + quoted, 1, 64);
    if (at == hops) memcpy(out + 12, in + 16, 4);
    else out[12] = 10, out[13] = 64, out[14] = at, out[15] = in[19];
    memset(out + 20, 0, 8);
    out[20] = at == hops ? 3 : 11, out[21] = at == hops ? 3 : 0;
    memcpy(out + 28, in, quoted);
    out[28 + 8] = 1;
    put_sum(out + 22, add(out + 20, 8 + quoted, 0));
    return size;
}

static void stop(int number) { (void)number, over = 1; }

int main(int argc, char **argv) {
    struct ifreq request = {0};
    int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
    if (argc < 4 || device < 0) return perror("/dev/net/tun"), 1;
    int hops = atoi(argv[2]);
    int64_t each = atoll(argv[3]) * 1000;
    request.ifr_flags = IFF_TUN | IFF_NO_PI;
    strncpy(request.ifr_name, argv[1], IFNAMSIZ - 1);
    if (hops > MOST_HOPS || ioctl(device, TUNSETIFF, &request)) return perror("TUNSETIFF"), 1;
    for (int hop = 1; hop <= hops; hop++) queues[hop] = calloc(SLOTS, sizeof(struct waiting));
    struct sigaction action = {.sa_handler = stop};
    sigaction(SIGTERM, &action, 0);
    puts("ready"), fflush(stdout);
    long came = 0, left = 0, full = 0;
    uint8_t packet[2048];
    while (!over) {
        int64_t now = now_ns(), next = now + 100000000;
        for (int length, burst = 0; burst < 64 && (length = read(device, packet, sizeof packet)) > 0; burst++) {
            if (length < 28 || packet[0] != 0x45 || length > BYTES - 40) continue;
            int at = packet[8] < hops ? packet[8] : hops;
            came++;
            if (end[at] - first[at] == SLOTS) { full++; continue; }
            struct waiting *one = &queues[at][end[at]++ % SLOTS];
            one->due = now_ns() + each * at;
            one->length = answer(one->data, packet, length, hops, at);
            put_sum(one->data + 10, add(one->data, 20, 0));
        }
        now = now_ns();
        for (int hop = 1; hop <= hops; hop++) {
            while (first[hop] != end[hop]) {
                struct waiting *one = &queues[hop][first[hop] % SLOTS];
                if (one->due > now) { if (one->due < next) next = one->due; break; }
                left += write(device, one->data, one->length) > 0;
                first[hop]++;
            }
        }
        struct pollfd on = {.fd = device, .events = POLLIN};
        int64_t wait = next - now_ns();
        struct timespec until = {0, wait > 0 ? wait : 0};
        ppoll(&on, 1, &until, 0);
    }
    printf("%ld %ld %ld\n", came, left, full);
    return 0;
}
