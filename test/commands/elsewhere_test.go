package commands

import (
	"encoding/xml"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// exception is a command that this test does not run, with the reason and a partial check.
type exception struct {
	pattern string
	why     string
	check   func(t *testing.T, command string)
}

// elsewhere lists all exceptions. An entry that matches no command is an error.
var elsewhere = []exception{
	{`^make (test|test-faults|test-hostile)( |$)`, "takes minutes; make ci runs it", makes},
	{`^make bench-(pod|docs)\b`, "takes most of an hour", makes},
	{`^make judge\b`, "takes up to half an hour, and builds other programs", makes},
	{
		`^mvn -f clients/java package -DskipTests$`,
		"needs Maven and what it downloads; make test-java-client " +
			"runs it", makesJar,
	},
	{`^java -javaagent:opentelemetry-javaagent.jar `, "needs OpenTelemetry's agent " +
		"and an application; make test-java runs them", namesJar},
	{
		`^(helm install spanstatsd oci://\S+ --set inject.enabled=true|kubectl label namespace shop spanstatsd=sidecar)$`,
		"needs a cluster and a registry; make test-kubernetes does both, as they are written, in its own",
		nil,
	},
	{
		`^go get github.com/spanstatsd/spanstatsd/clients/otel-go$`,
		"needs a release; test/release runs it with its own release", nil,
	},
	{
		`^pip install \./clients/python |^OTEL_PYTHON_CONFIGURATOR=spanstatsd `,
		"needs packages of Python; make test-python-client installs them, and runs applications with these variables", nil,
	},
	{
		`^npm install spanstatsd-opentelemetry|^npm pack |^(OTEL_\S+ +)*node --import @spanstatsd/|^sh test/clients/node/install.sh `,
		"needs packages of npm; make test-node-client installs them, and runs applications with these flags", nil,
	},
	{`^(systemctl restart spanstatsd|kubectl (rollout|exec|port-forward) )`, "needs systemd or a cluster", nil},
}

// makes checks that make has a rule for the command's target.
func makes(t *testing.T, command string) {
	t.Helper()
	dry := exec.Command("sh", "-c", strings.Replace(command, "make ", "make --dry-run ", 1))
	dry.Dir = clone
	if out, err := dry.CombinedOutput(); err != nil {
		t.Errorf("%s: %v, %s", command, err, out)
	}
}

// extensionJar returns the path at which Maven builds the extension, according to its pom.xml.
func extensionJar(t *testing.T) string {
	t.Helper()
	const module = "clients/java/opentelemetry"
	var pom struct {
		Build struct {
			Directory string `xml:"directory"`
			Plugins   []struct {
				ID    string   `xml:"artifactId"`
				Names []string `xml:"executions>execution>configuration>finalName"`
			} `xml:"plugins>plugin"`
		} `xml:"build"`
	}
	text := readFile(t, filepath.Join(repository, module, "pom.xml"))
	if err := xml.Unmarshal([]byte(text), &pom); err != nil {
		t.Fatal(err)
	}
	for _, plugin := range pom.Build.Plugins {
		if plugin.ID == "maven-assembly-plugin" && len(plugin.Names) == 1 && pom.Build.Directory == "" {
			return module + "/target/" + plugin.Names[0] + ".jar"
		}
	}
	t.Fatal("the module of the extension does not name its jar")
	return ""
}

// makesJar checks that the extension's module is part of the Maven build.
func makesJar(t *testing.T, _ string) {
	t.Helper()
	if !strings.Contains(readFile(t, repository+"/clients/java/pom.xml"), "<module>opentelemetry</module>") {
		t.Error("mvn -f clients/java makes no extension")
	}
}

// namesJar checks that the JVM loads the jar from the path where Maven builds it.
func namesJar(t *testing.T, command string) {
	t.Helper()
	named := regexp.MustCompile(` -Dotel\.javaagent\.extensions=(\S+) `).FindStringSubmatch(command)
	if want := extensionJar(t); named == nil || named[1] != want {
		t.Errorf("%s: Maven makes %s", command, want)
	}
}
