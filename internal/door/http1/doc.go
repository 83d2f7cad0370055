// Package http1 carries HTTP/1.1 past net/http where a message is plain: its head states a
// length and asks for nothing else of its connection. Requests with traces come by the
// hundred a second on connections that stay, and nearly all are plain. net/http needs a second
// goroutine and some eighty objects for each, which costs more than carrying its bytes.
//
// # What it owns
//
// A Conn is a sender's connection. net/http serves it; but where net/http waits for a next
// request the Conn looks at what comes, and if it is plain and its room's Handler takes it,
// has it answered there, on the connection's goroutine. All else is net/http's, and nothing
// behind it; a request that was begun and then takes its time is handed over to it. So no part
// of net/http's server is written a second time, and a fuzz test holds that a Head that is plain
// is the same message to net/http.
//
// An Upstream is a connection to whoever is behind: a request goes on in one write of head and
// body, and its answer is read by the goroutine that wrote it. Upstreams keeps them.
//
// # Threading
//
// The goroutine of a connection does all of its work. Of a request that net/http serves one
// beside it watches for the sender's leaving, and one looks for an early answer while a request
// takes long to be written. One lock guards what other goroutines ask of a Conn, and one the
// connections that are kept.
//
// # Bounds
//
// A head has MaxHead bytes and as many lines as MaxHeaderLines, a body MaxBody; the
// header of an answer MaxAnswerHeader. MaxKept connections are kept, each for KeptFor.
package http1
