package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// startStock starts the uninstrumented service that the applications call.
func startStock() *httptest.Server {
	statuses := []int{
		http.StatusOK, http.StatusOK, http.StatusCreated, http.StatusNotFound,
		http.StatusInternalServerError,
	}
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		number := 0
		_, _ = fmt.Sscanf(r.URL.Path, "/stock/%d", &number)
		w.WriteHeader(statuses[number%len(statuses)])
	}))
}

func pythonShop(ctx context.Context, sdks string, env []string) error {
	bin := sdks + "/python/bin"
	return shop(ctx, append(env, "PATH="+bin+":"+os.Getenv("PATH")), bin+"/opentelemetry-instrument",
		"python", "apps/shop.py")
}

func nodeShop(ctx context.Context, sdks string, env []string) error {
	return shop(ctx, append(env, "NODE_PATH="+sdks+"/node/node_modules",
		"NODE_OPTIONS=--require @opentelemetry/auto-instrumentations-node/register"),
		"node", "apps/shop.js")
}

func javaShop(ctx context.Context, sdks string, env []string) error {
	return shop(ctx, env, "java", "-javaagent:"+sdks+"/java/opentelemetry-javaagent.jar", "-cp",
		sdks+"/java/classes", "Shop")
}

// shop runs an application of `make test-otel` until visit has returned.
func shop(ctx context.Context, env []string, program string, arguments ...string) error {
	app := exec.CommandContext(ctx, program, arguments...)
	app.Env = env
	in, err := app.StdinPipe()
	if err != nil {
		return fmt.Errorf("run application: %w", err)
	}
	out, err := app.StdoutPipe()
	if err != nil {
		return fmt.Errorf("run application: %w", err)
	}
	var complaints bytes.Buffer // and its request log
	app.Stderr = &complaints
	if err := app.Start(); err != nil {
		return fmt.Errorf("run application: %w", err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if port, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
			if err := visit(ctx, "http://127.0.0.1:"+port); err != nil {
				return err
			}
			in.Close()
		}
	}
	if err := app.Wait(); err != nil {
		return fmt.Errorf("run application: %w: %s", err, complaints.Bytes())
	}
	return nil
}

// Enough requests and concurrent users to fill the largest batch.
const (
	requests = 1200
	users    = 4
)

// visit sends orders as several concurrent users.
func visit(ctx context.Context, url string) error {
	failed := make(chan error, users)
	var visiting sync.WaitGroup
	for user := range users {
		visiting.Go(func() {
			for i := user; i < requests; i += users {
				if err := order(ctx, fmt.Sprintf("%s/orders/%d", url, i), i); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	visiting.Wait()
	close(failed)
	return <-failed
}

func order(ctx context.Context, url string, number int) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("order: %w", err)
	}
	for name, value := range map[string]string{
		"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
		"Accept":     "text/html,application/xhtml+xml",
		"Referer":    "https://shop.example/orders", "X-Request-Id": fmt.Sprintf("7d1c4f0e-%012d", number),
		"X-Forwarded-For": "203.0.113.17",
	} {
		request.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("order: %w", err)
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}
