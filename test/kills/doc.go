// Command kills runs built daemons under load, kills them with SIGKILL at random instants, thousands of
// times, and says whether each span was counted exactly once or stands in a named book:
//
//	go run . -time 1h [-kills N] [-seed N] [-rate N] [-destination NAMES] [-door NAMES] [-log FILE]
//
// A run is made of episodes, several at a time. An episode has one place where daemons follow one another,
// stand-ins for its destinations, clients (Go and Java) that publish all the while, and senders at the HTTP
// doors. After some tens of kills all of them come to their end, in order, and the episode is judged. What it
// is made of is drawn from its seed (scenario.go); where it fails, its line says the seed, and -seed has the
// same drawn again. When things happen is the kernel's.
//
// With -lives daemons are not killed at random but live by a plan, which is drawn from the seed as
// well (life.go): any end that a daemon can have, and what may become of its file. Raw clients that
// crash come with it (crash.go). A plan that fails is shortened for as long as it still does.
//
// # What is exact
//
// Spans have names that tell in which 50 ms which client published them, or in which request they came, so a
// span that is lost does not hide behind another one that counts twice. For each name of a client
//
//	published = counted + missing
//
// at each destination; more counted than published is twice. Of what is missing of a client, so much must be
// named: by the client as daemon_died, for what it could not keep, all of which is missing; or as ambiguous,
// of which anything between nothing and all is. The rest is lost. A client with room for all that it keeps
// has no reason to say daemon_died: that is lost as well. Some clients leave without waiting for the outcome
// of what they handed over; of that, so much may be missing.
//
// What came by an HTTP door and was answered is nobody's to hand over again. What is missing of it
// must be what the next daemon says that the killed one had: no more, no less (doors.go says what
// of a request that was not answered). What a daemon that ended in order gave up, because a
// destination refused its one try, is in its last line, but not whose it was. The last line has it
// as "counted as lost C of C": named, and found missing.
//
// # Destinations
//
// The agent and a receiver of OTLP count when they have read a request whole, whoever is still there to hear
// the answer. They wait now and then, before they count and before they answer, and refuse some. Running
// totals count by series and start, Prometheus by the last scrape of each life that was read whole. A kill
// is often aimed at what just arrived, because an interval has few moments in which anything is doubtful. So
// the share of what is ambiguous is far above that of a daemon that is killed at any time.
//
// # Want of memory
//
// Where this process may make control groups, daemons of some episodes have 64 MiB, and are killed by the
// kernel because another process in their group takes all of it (starve.go). The next one has as much.
//
// # Threading
//
// A goroutine an episode, which starts and kills; one a client, a sender and a scraper. Each account has
// one owner until that has ended; what destinations count is under a lock of each.
//
// # Bounds
//
// An episode remembers some thousand names. At 100,000 spans a second there is one episode at a time.
package main
