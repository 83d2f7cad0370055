// Package deploy tests the contents of deploy/ and their documentation.
//
//   - Every manifest, and every rendering of the chart with each option, is decoded
//     strictly into the types of the Kubernetes API, and keeps the promises of
//     promises.go. The promises themselves are tested by breaking each of them.
//   - Prometheus's parser reads the alert rules, and its engine evaluates them
//     over the series of alerts_test.yaml: each alert fires for one series and not for
//     another one. Each alert links to a section of docs/operations.md.
//   - Every query of the dashboards is valid and uses metrics of docs/metrics.md, which
//     another test compares with the program, or request metrics.
//   - Compose's code loads the example for `docker compose up`, and all its files
//     exist. Its commands also run as plain processes, with a real Prometheus.
//   - The steps of docs/install.md are executed as documented: the two files for a
//     sidecar, the installation on a host, the image name.
//   - A real Prometheus server scrapes a daemon under load and queries its accounting.
//   - The image's root file system runs the daemon: as the only process, read-only, as an unprivileged user.
//
// The package is a separate module because of the many dependencies of these parsers.
// The tests need no cluster, container runtime or network.
package deploy
