// Package page opens the daemon's status page in a real browser, headless Chromium, and checks it from
// a user's view: the figures are those of /status, the console is empty, labels chosen by tracers stay
// text, the page reports when it is out of date, it fits a phone, and it supports a keyboard.
//
// The daemon is the current program under load, with a fake agent. A proxy between browser and daemon
// uses a path prefix like kubectl proxy, which reveals absolute addresses in the page. It also records
// each response of /status, so that the page can be compared with the exact response that it shows.
//
// In another page, in web, the OpenTelemetry SDK for browsers exports to the daemon, which allows the
// page's origin. `make test-web` installs the SDK and runs that test.
//
// The tests have the build tag browser, since Chromium is not installed everywhere. `make test-page`
// runs them and fails without Chromium. `make test` leaves them out. `make ci` runs them if there is
// Chromium, which .ci/run installs if possible, and otherwise prints NOT RUN.
package page
