package status

import (
	"io"
	"net/http"
	"path"
	"regexp"
	"strings"
	"testing"
)

// TestPage_IsComplete requests the page and everything that it references, like a browser. Each file must exist, with
// the right content type and policy. All references must be relative and within the page.
func TestPage_IsComplete(t *testing.T) {
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
		"page/main.js", "page/accounting.js", "page/advice.js", "page/page.css",
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

// TestPage_InterpretsNoMarkup searches the page for code that could interpret a label as HTML. The content security
// policy would block such code, but there must not be any.
func TestPage_InterpretsNoMarkup(t *testing.T) {
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

// TestPage_AdviceForEachReason checks that the page has advice for exactly the existing reasons.
func TestPage_AdviceForEachReason(t *testing.T) {
	text, err := pageFiles.ReadFile("page/advice.js")
	if err != nil {
		t.Fatal(err)
	}
	status := startServer(t, Config{}).Status()
	for kind, by := range map[string]map[string]uint64{
		"dropped": status.Accounting.Dropped,
		"unsent":  status.Accounting.UnsentBy,
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

// get requests a path and returns the response.
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
