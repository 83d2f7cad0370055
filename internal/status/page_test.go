package status

import (
	"io"
	"net/http"
	"path"
	"regexp"
	"strings"
	"testing"
)

// TestPageIsWhole asks for the page and everything that it names, as a browser
// would: all of it is there, of the right kind, under the policy, and nothing is
// named that is elsewhere or would need another address than the page's own.
func TestPageIsWhole(t *testing.T) {
	s := startServer(t, Config{})
	references := regexp.MustCompile(`(?:href|src)="([^"#]+)"|from "([^"]+)"|url\(([^)]+)\)`)
	asked := map[string]bool{"": true}
	for queue := []string{""}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		response, body := get(t, s, "/"+at, nil)
		if response.StatusCode != http.StatusOK {
			t.Errorf("/%s: %s", at, response.Status)
			continue
		}
		if strings.HasPrefix(at, "page/") || at == "" {
			if policy := response.Header.Get("Content-Security-Policy"); !strings.HasPrefix(policy,
				"default-src 'none'") {
				t.Errorf("/%s has the policy %q", at, policy)
			}
			if want := map[string]string{
				".html": "text/html; charset=utf-8",
				".css":  "text/css; charset=utf-8",
				".js":   "text/javascript; charset=utf-8",
				".svg":  "image/svg+xml",
			}[path.Ext(at)]; at != "" && response.Header.Get("Content-Type") != want {
				t.Errorf("/%s is %q, want %q", at, response.Header.Get("Content-Type"), want)
			}
			for _, match := range references.FindAllStringSubmatch(body, -1) {
				name := match[1] + match[2] + match[3]
				if strings.HasPrefix(name, "/") || strings.Contains(name, ":") {
					t.Errorf("/%s names %s, which does not stand below it", at, name)
				}
				if name = path.Join(path.Dir(at), name); !asked[name] {
					asked[name] = true
					queue = append(queue, name)
				}
			}
		}
	}
	for _, file := range []string{
		"page/main.js", "page/books.js", "page/advice.js", "page/page.css",
		"page/icon.svg", "status", "metrics",
	} {
		if !asked[file] {
			t.Errorf("the page does not lead to %s", file)
		}
	}
	if response, _ := get(t, s, "/nothing", nil); response.StatusCode != http.StatusNotFound {
		t.Errorf("/nothing: %s", response.Status)
	}
}

// TestPageNeverReadsMarkup looks for what could turn a label into more than text.
// The policy would stop it; here it is not even tried.
func TestPageNeverReadsMarkup(t *testing.T) {
	files, err := pageFiles.ReadDir("page")
	if err != nil {
		t.Fatal(err)
	}
	markup := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|` +
		`eval\(|new Function|style="|\son[a-z]+="|javascript:`)
	for _, file := range files {
		text, err := pageFiles.ReadFile("page/" + file.Name())
		if err != nil {
			t.Fatal(err)
		}
		if found := markup.Find(text); found != nil {
			t.Errorf("%s has %s", file.Name(), found)
		}
	}
}

// TestPageHasAdviceForEachReason compares what the page can say with the reasons
// that there are: all of them, and no others.
func TestPageHasAdviceForEachReason(t *testing.T) {
	text, err := pageFiles.ReadFile("page/advice.js")
	if err != nil {
		t.Fatal(err)
	}
	status := startServer(t, Config{}).Status()
	for kind, by := range map[string]map[string]uint64{
		"dropped": status.Books.Dropped,
		"unsent":  status.Books.UnsentBy,
	} {
		section := regexp.MustCompile(`(?ms)^  ` + kind + `: \{\n(.*?)^  \}`).FindSubmatch(text)
		if section == nil {
			t.Fatalf("advice.js has no section %s", kind)
		}
		advised := map[string]bool{}
		for _, line := range regexp.MustCompile(`(?m)^    (\w+): "`).FindAllSubmatch(section[1], -1) {
			advised[string(line[1])] = true
		}
		for reason := range by {
			if !advised[reason] {
				t.Errorf("advice.js says nothing of %s %s", kind, reason)
			}
			delete(advised, reason)
		}
		if len(advised) > 0 {
			t.Errorf("advice.js knows reasons of %s that there are not: %v", kind, advised)
		}
	}
}

// get asks a server and reads the answer.
func get(t *testing.T, s *Server, path string, edit func(*http.Request)) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(request)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}
