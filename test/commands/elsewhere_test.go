package commands

import (
	"encoding/xml"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// exception is a command that this test does not run, why, and what holds it as far as can be.
type exception struct {
	pattern string
	why     string
	check   func(t *testing.T, command string)
}

// elsewhere are all of them. One that matches no command is a mistake.
var elsewhere = []exception{
	{`^make (test|test-faults|test-hostile)( |$)`, "takes minutes; make ci runs it", makes},
	{`^make bench-(pod|docs)\b`, "takes most of an hour", makes},
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
	{`^(systemctl restart spanstatsd|kubectl (rollout|exec|port-forward) )`, "needs systemd or a cluster", nil},
}

// makes: make knows what to do.
func makes(t *testing.T, command string) {
	t.Helper()
	dry := exec.Command("sh", "-c", strings.Replace(command, "make ", "make --dry-run ", 1))
	dry.Dir = clone
	if out, err := dry.CombinedOutput(); err != nil {
		t.Errorf("%s: %v, %s", command, err, out)
	}
}

// extensionJar is where Maven puts the extension, by what its module says.
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
	t.Fatal("the module of the extension does not say which jar it makes")
	return ""
}

// makesJar: the module that makes the extension is among those that Maven goes through.
func makesJar(t *testing.T, _ string) {
	t.Helper()
	if !strings.Contains(readFile(t, repository+"/clients/java/pom.xml"), "<module>opentelemetry</module>") {
		t.Error("mvn -f clients/java makes no extension")
	}
}

// namesJar: the JVM is given the jar from where Maven puts it.
func namesJar(t *testing.T, command string) {
	t.Helper()
	named := regexp.MustCompile(` -Dotel\.javaagent\.extensions=(\S+) `).FindStringSubmatch(command)
	if want := extensionJar(t); named == nil || named[1] != want {
		t.Errorf("%s: Maven makes %s", command, want)
	}
}
