// Package otlpanswer is what a server of OTLP answers, by gRPC or by HTTP: a google.rpc.Status, with
// the time after which a request may be tried again, or what of a request was left out. Our door
// writes and reads it, and so does the exit of statistics read it.
//
// What is read was written by whoever stands at the other end. What can't be read says nothing, no
// time to wait is longer than MaxRetryAfter, and nothing is kept of the bytes but a text.
//
// # Threading
//
// There are functions and values alone.
package otlpanswer
