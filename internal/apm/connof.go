package apm

import (
	"context"
	"net"
)

// connKey is where the context of a connection's requests holds the connection.
type connKey struct{}

// connContext is for http.Server.
func connContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// connOf returns the connection of a request, nil where a test made it without one.
func connOf(ctx context.Context) *conn {
	c, _ := ctx.Value(connKey{}).(*conn)
	return c
}
