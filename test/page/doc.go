// Package page opens the daemon's page in a real browser, Chromium without a
// window, and looks at it as a person would: that the figures are those of
// /status, that nothing is written to the console, that labels which tracers
// chose stay text, that the page says when it is out of date, that it fits a
// phone and answers a keyboard.
//
// The daemon is the program, built anew and under load, before a stand-in
// agent. Between browser and daemon stands a proxy under a path of its own, as
// kubectl proxy does it: it shows that every address of the page is relative,
// and it remembers each answer of /status, so that what is on the page can be
// held against the very answer that it drew.
//
// Another page, in web, has OpenTelemetry's SDK for browsers export to the daemon, which lets it by its
// origin: `make test-web` installs the SDK and runs that.
//
// The tests have the build tag browser, since not every machine has Chromium:
// `make test-page` runs them, and fails where there is none. `make test` leaves
// them out. `make ci` runs them where there is Chromium, which .ci/run installs where
// it can, and says NOT RUN elsewhere.
package page
