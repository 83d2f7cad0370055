// Package java runs real Java applications that publish their spans with the client in clients/java,
// and compares the statistics of the daemon binary with an oracle. It is a separate module, so that its
// dependencies never become dependencies of the daemon.
//
// The application is a Spring Boot web server with a database and a 64 MiB heap, with the published
// OpenTelemetry Java agent. One setting adds this project's extension to the agent, which samples one
// trace in a hundred. The oracle is a second extension that exports every recorded span, with the SDK's
// own exporter, to a second daemon, which counts it as OTLP. The same spans are therefore read twice,
// inside the process and outside, and the statistics of both daemons must be equal for each bin.
//
// The application's own exporter sends to a receiver of this package, which counts traces and checks
// the marker that keeps a downstream agent from counting them again.
//
// The tests have the build tag languages, since they need a JDK and the Maven packages installed by
// install.sh: `make test-java`. They run on the machine's JDK and on each newer one in /usr/lib/jvm.
// Latencies are reported but not asserted. To show that the application does not wait for a hanging
// daemon, it is enough that it responds in the meantime.
package java
