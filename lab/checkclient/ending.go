package checkclient

import (
	"github.com/spanstatsd/spanstatsd/internal/ingest"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// ending is why a daemon closes a connection, and the position of the error.
type ending struct {
	err   error  // error of package ingest, with the reason
	bytes []byte // message that was being parsed
	at    int    // offset of the error in bytes
}

// badMessage returns the ending for a message that violates the protocol.
func badMessage(message []byte, at int, err error) *ending {
	return &ending{ingest.NewFault(ingest.FaultBadMessage, err), message, at}
}

// malformed returns the ending for a parse error, with its position in message, or nil if err is
// nil.
func malformed(message []byte, err error) *ending {
	if err == nil {
		return nil
	}
	left, ok := wire.UndecodedBytes(err)
	if !ok {
		left = len(message)
	}
	return badMessage(message, len(message)-left, err)
}
