package checkclient

import (
	"github.com/spanstatsd/spanstatsd/internal/ingest"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// ending is why a daemon closes a connection, and where.
type ending struct {
	err   error  // with the reason, as of package ingest
	bytes []byte // what was being read
	at    int    // the place in it
}

// badMessage is the ending by a message that is not what the protocol says.
func badMessage(message []byte, at int, err error) *ending {
	return &ending{ingest.NewFault(ingest.FaultBadMessage, err), message, at}
}

// malformed finds the place of an error, if there is one, in the message that it is about.
func malformed(message []byte, err error) *ending {
	if err == nil {
		return nil
	}
	left, ok := wire.Left(err)
	if !ok {
		left = len(message)
	}
	return badMessage(message, len(message)-left, err)
}
