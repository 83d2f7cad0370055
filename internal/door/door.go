package door

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
	"github.com/spanstatsd/spanstatsd/internal/door/conns"
	"github.com/spanstatsd/spanstatsd/internal/door/http1"
)

// Door is one API that traces come by. A Server owns the life of all its requests; a door says
// which requests there are, what they are answered, and what of them is counted.
//
// A door's methods are called by many goroutines at a time.
type Door interface {
	// Open looks at the head of a request. It returns what is done with one whose body is to be
	// held, or the reply to one that is refused without a look at its body, or neither: then the
	// request is for Serve.
	Open(h *Held) (Request, *Reply)
	// Serve answers any other request, which net/http has read up to its body.
	Serve(w http.ResponseWriter, r *http.Request)
	// Learn takes over what is wanted of traces just now. It is called before the first request
	// and whenever the channel that it returned last is closed.
	Learn() (changed <-chan struct{})
}

// Request is one whose body is held. Its methods are called one after the other in the order in
// which they stand here, each once at most, by whichever goroutine has the request.
//
// It is counted by Held.Publish, which Read or Begin may call: Read of a door that counts whatever
// becomes of a request, Begin of one whose requests must not be counted where they don't go on.
type Request interface {
	// Read is told that the body is in memory, all of it, or with what it broke off or found no
	// room. It returns the reply of a request that goes nowhere else; nil lets it go on.
	Read(broken error) *Reply
	// Begin says what goes on. There is a connection to who is behind, and nothing is written.
	Begin() Parcel
	// Answer makes a reply of what who is behind has answered, Unanswered of an answer that did not
	// come, or that broke off before anything of a reply was written.
	Answer(a *Answer) *Reply
	Unanswered(err error) *Reply
}

// Parcel is a request as it goes on.
type Parcel struct {
	Method, Target string
	Fields         http1.Header // but for Host and Content-Length
	Prefix         []byte       // before the message; nil but for gRPC
	Message        []byte
}

// Reply is what the sender of a request is told.
type Reply struct {
	// Write writes it. Where that fails, or where it is nil, the connection ends without an answer.
	Write func(w http.ResponseWriter) error
	// IsFinal: it ends the matter for its sender, who has no reason to send the same again.
	IsFinal bool
}

// Answer is what who is behind has answered.
type Answer struct {
	Status int
	Field  func(name string) string // of its header, and of its trailer where the body is read
	whole  []byte                   // the message where it came at once and is plain, else nil
	body   []byte                   // of it
	rest   *http.Response           // the answer up to its body, else
	from   *http1.Upstream          // that it comes from; nil of another transport
	ctx    context.Context          // of the exchange
}

// Held is a request whose body is held until it is answered. One goroutine at a time has it: that
// of its connection, or of net/http's handler.
type Held struct {
	Method, Path, Target string       // Target is the path with what follows it
	Fields               http1.Header // that came
	Conn                 *http1.Conn  // that it came on; nil where a test made it without one
	HTTP                 *http.Request
	Body                 *bodies.Body // nil where it is not read
	Result               int          // what became of it, as a place in Setup.Results

	server   *Server
	request  Request
	isBegun  bool
	parcel   Parcel
	upstream *http1.Upstream // that it goes on by, nil before
	more     []*bodies.Body
	sum      uint64 // of a body that is counted, 0 until then
	owed     []owed // what was counted of it, until its sender is told
}

// Server is the life of a door.
type Server struct {
	Log    *RequestLog
	Bodies bodies.Pool
	Walked atomic.Uint64 // bytes that were walked to be counted

	door       Door
	config     Config
	setup      Setup
	results    []atomic.Uint64 // requests by what became of them
	limiter    *conns.Limiter
	publishers *Publishers
	counted    *bodies.Counted
	waits      http1.Waiting
	upstreams  *http1.Upstreams  // nil where requests go on otherwise, or nowhere
	transport  http.RoundTripper // nil where they go on by upstreams, or nowhere
	plain      *http1.Server
	http       *http.Server
	traffic    traffic
	listeners  conns.Listeners
	stopping   chan struct{} // the daemon has begun to stop
	loops      sync.WaitGroup
	ended      chan struct{} // the loops have nothing to do any more
}

// traffic is the requests that are under way, and all that net/http has had.
type traffic struct {
	serving   atomic.Int64
	byNetHTTP atomic.Uint64
}

// IsStopping says whether the daemon has begun to stop.
func (s *Server) IsStopping() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}
