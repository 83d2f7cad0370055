package commands

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v2"
)

// prometheus is a server with the configuration of a page or, if Prometheus is not installed, the
// response that it would scrape.
type prometheus struct {
	*process
	target string
}

const server = "http://127.0.0.1:9090"

// programOf returns the path of a Prometheus program, from a system package or built by `make
// fleet-programs`, or "".
func programOf(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	built, err := filepath.Abs(filepath.Join(repository, "bin/fleet", name))
	if _, missing := os.Stat(built); err != nil || missing != nil {
		return ""
	}
	return built
}

// scrape loads a page's configuration into Prometheus, which scrapes the daemon if one is running.
func (r *reader) scrape(b *block) {
	r.t.Helper()
	var shown struct {
		Configs []struct {
			Path    string `yaml:"metrics_path"`
			Targets []struct {
				Addresses []string `yaml:"targets"`
			} `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	if err := yaml.Unmarshal([]byte(b.text()), &shown); err != nil || len(shown.Configs) != 1 ||
		len(shown.Configs[0].Targets) != 1 {
		r.t.Fatalf("%s: %v, %v", b, shown, err)
	}
	config := filepath.Join(r.home, "prometheus.yml")
	// Once per second instead of once per minute, to save time.
	if err := os.WriteFile(config, []byte(b.text()+"global:\n  scrape_interval: 1s\n"), 0o644); err != nil {
		r.t.Fatal(err)
	}
	if promtool := programOf("promtool"); promtool != "" {
		r.run(promtool + " check config " + config)
	}
	if r.daemon == nil {
		return
	}
	r.server = &prometheus{target: "http://" + shown.Configs[0].Targets[0].Addresses[0] +
		shown.Configs[0].Path}
	program := programOf("prometheus")
	if program == "" {
		r.t.Log("NOT RUN: Prometheus is not installed; only its configuration is checked")
		return
	}
	r.server.process = r.begin(program + " --config.file=" + config + " --storage.tsdb.path=" +
		filepath.Join(r.home, "tsdb") + " --web.listen-address=" + strings.TrimPrefix(server, "http://"))
	r.await(r.server.process, "a Prometheus that is ready", soon, func() bool {
		return strings.Contains(get(server+"/-/ready"), "is Ready")
	})
}

// ask checks that each query returns a number.
func (r *reader) ask(b *block) {
	r.t.Helper()
	for _, question := range b.commands() {
		switch {
		case r.server == nil:
			r.t.Logf("NOT RUN: %s, because nothing is scraped on this page", question)
		case r.server.process == nil:
			r.await(r.daemon, "the series of "+question, soon, func() bool {
				return hasSeries(get(r.server.target), question)
			})
		default:
			r.await(r.server.process, "an answer to "+question, 2*time.Minute, func() bool {
				return answers(question)
			})
		}
	}
}

// hasSeries reports whether a scrape contains each metric of a query, with each label by which the
// query groups.
func hasSeries(scrape, question string) bool {
	var labels []string
	for _, by := range regexp.MustCompile(`by \(([a-z_, ]+)\)`).FindAllStringSubmatch(question, -1) {
		labels = append(labels, strings.Split(by[1], ", ")...)
	}
	for _, metric := range regexp.MustCompile(`traces_\w+`).FindAllString(question, -1) {
		series := regexp.MustCompile(`(?m)^` + metric + `\{.*`).FindString(scrape)
		if series == "" {
			return false
		}
		for _, label := range labels {
			if !strings.Contains(series, label+`="`) {
				return false
			}
		}
	}
	return true
}

func get(address string) string {
	answer, err := http.Get(address)
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	return string(body)
}

func answers(question string) bool {
	var answer struct {
		Data struct {
			Result []struct {
				Value [2]any `json:"value"`
			} `json:"result"`
		} `json:"data"`
	}
	body := get(server + "/api/v1/query?" + url.Values{"query": {question}}.Encode())
	if json.Unmarshal([]byte(body), &answer) != nil {
		return false
	}
	for _, result := range answer.Data.Result {
		if value, _ := result.Value[1].(string); value != "NaN" && value != "0" {
			return true
		}
	}
	return false
}
