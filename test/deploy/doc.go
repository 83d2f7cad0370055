// Package deploy holds what stands in deploy/ to what it promises.
//
//   - Every manifest, and every rendering of the chart with each switch, decodes
//     strictly into the types of the Kubernetes API, and keeps the promises of
//     promises.go. Those are themselves tested: each must see when it is broken.
//   - The alert rules are read by Prometheus's own parser and evaluated by its own
//     engine over the series of alerts_test.yaml: each fires on one, and stays
//     silent on another. Each leads to a section of docs/operations.md.
//   - Every query of the dashboards parses and names metrics of docs/metrics.md,
//     which another test holds equal to the program, or those of requests.
//   - The example for `docker compose up` is loaded by Compose's own code: what it names is there.
//     Its commands and files also run as plain processes, before a real Prometheus.
//   - The steps of docs/install.md are taken as they are written: the two files for a sidecar,
//     the installation on a host, the name of the image.
//   - A real Prometheus server scrapes a real daemon under load and is asked for
//     the books.
//   - The image's root runs the daemon: alone, read-only, as its own user.
//
// It is a module of its own, since these parsers bring half a cloud with them.
// Nothing here needs a cluster, a container runtime or a network.
package deploy
