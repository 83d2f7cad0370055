// Command kills runs daemon binaries under load, kills them with SIGKILL at random times, thousands
// of times, and checks that each span was either counted exactly once or reported as lost or ambiguous:
//
//	go run . -time 1h [-kills N] [-seed N] [-rate N] [-destination NAMES] [-receiver NAMES] [-log FILE]
//
// A run consists of episodes, several in parallel. An episode runs one daemon process after another on
// the same socket, with fake destinations, Go, Java and Python clients that publish all the time, and
// senders that use the HTTP receivers. After some tens of kills everything shuts down gracefully, and
// the accounts are compared. The seed of an episode determines its scenario (scenario.go). The output
// line of a failed episode contains the seed, and -seed draws the same scenario again. The timing
// depends on the kernel.
//
// With -lives, daemons are not killed at random but follow a plan that is drawn from the seed
// (life.go): it contains every way in which a daemon can end, and damage to its recovery file. Crashing
// raw clients take part as well (crash.go). A plan that fails is shortened for as long as it keeps
// failing.
//
// # What is exact
//
// The name of a span identifies the client and the 50 ms window in which it was published, or the
// request that contained it. A lost span can therefore not be masked by another span that is counted
// twice. For each span name of a client
//
//	published = counted + missing
//
// must hold at each destination; more counted than published means double counting. A client must
// account for its missing spans: as daemon_died, for spans that it could not keep and that are all
// missing, or as ambiguous, for spans that may or may not be missing. All other missing spans are
// lost. A client with enough capacity for all its spans has no reason to report daemon_died, so these
// count as lost, too. Some clients disconnect without waiting for the outcome of the spans that they
// wrote; up to that number of spans can be missing.
//
// No client replays the spans of an acknowledged HTTP request. If such spans are missing, the next
// daemon must report exactly that number as lost by the killed daemon (sender.go describes
// unacknowledged requests). During a graceful shutdown a daemon tries each destination once. Its last
// log line reports the spans of rejected attempts as abandoned, but not the clients that sent them.
// The last line of this program shows the total as "reported as lost C of D": C spans were reported, D
// are missing.
//
// # Destinations
//
// The agent and the OTLP backend count a request once they have read it completely, even if the daemon
// is no longer there to read the response. They sometimes wait before they count and before they
// respond, and they reject some requests. Cumulative totals are kept per series and start time. For
// Prometheus, the last complete scrape of each life counts. Many kills follow the arrival of a
// request, because spans are in doubt only during few moments of an interval. The share of ambiguous
// spans is therefore far higher than for a daemon that is killed at a random time.
//
// # Memory pressure
//
// If this process can create control groups, the daemons of some episodes have 64 MiB. The kernel
// kills them because another process in their group allocates all the memory (oom.go). The next daemon
// has the same limit.
//
// # Concurrency
//
// Each episode has a goroutine that starts and kills daemons, and each client, sender and scraper has
// its own goroutine. An account has a single owner until that owner has ended. Each destination
// protects its counts with a lock.
//
// # Limits
//
// An episode remembers a few thousand names. At 100,000 spans per second, episodes run one at a time.
package main
