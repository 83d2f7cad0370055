// Package java has real applications in Java publish their spans by the client in
// clients/java, and holds what the daemon's own program counts of them against an oracle. It
// is a module of its own, so that what it needs never enters the daemon's.
//
// The application is a web server of Spring Boot with a database, with a heap of 64 MiB, under
// OpenTelemetry's Java agent as it is published. Our extension is given to that agent by
// one setting, and it samples one trace in a hundred. The oracle is a second extension, which
// exports every span that is recorded, by the SDK's own exporter, to a second daemon, which
// counts it as OTLP. So the same spans are read twice, in the process and outside, and
// what both daemons tell their agents must be the same to the last bin.
//
// What the application itself exports goes to a receiver of ours, which sees how many
// traces that are, and the mark that tells an agent behind it not to count them again.
//
// The tests have the tag languages, since they need a JDK and what install.sh fetches from
// Maven's registry: `make test-java`. They run on the JDK of the machine and on each
// newer one in /usr/lib/jvm. Latencies are reported and not judged: that the application
// does not wait for a daemon that hangs is shown by its answers coming while it hangs.
package java
