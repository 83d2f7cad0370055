//go:build browser

package page

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browser is a browser tab that records errors and warnings.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu         sync.Mutex
	complaints []string
}

// testDeadline limits a complete test. No test asserts a duration.
const testDeadline = 4 * time.Minute

func openBrowser(t *testing.T) *browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox,
		chromedp.Flag("disable-dev-shm-usage", true))
	if path := os.Getenv("CHROMIUM"); path != "" {
		options = append(options, chromedp.ExecPath(path))
	}
	ctx, cancel := context.WithTimeout(t.Context(), testDeadline)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx}
	chromedp.ListenTarget(ctx, b.listen)
	b.run(log.Enable(), runtime.Enable(), page.Enable())
	return b
}

// listen records errors, warnings and dialogs.
func (b *browser) listen(event any) {
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning ||
			e.Type == runtime.APITypeAssert {
			b.complain("console: " + string(e.Args[0].Value) + e.Args[0].Description)
		}
	case *runtime.EventExceptionThrown:
		b.complain("exception: " + e.ExceptionDetails.Error())
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError || e.Entry.Level == log.LevelWarning {
			b.complain("log: " + e.Entry.Text + " " + e.Entry.URL)
		}
	case *page.EventJavascriptDialogOpening:
		b.complain("dialog: " + e.Message)
		go func() { _ = chromedp.Run(b.ctx, page.HandleJavaScriptDialog(true)) }()
	}
}

func (b *browser) complain(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.complaints = append(b.complaints, what)
}

// expectNoComplaints fails if there are recorded complaints, and clears them.
func (b *browser) expectNoComplaints() {
	b.t.Helper()
	for _, what := range b.takeComplaints() {
		b.t.Error(what)
	}
}

func (b *browser) takeComplaints() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.complaints
	b.complaints = nil
	return taken
}

func (b *browser) run(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.t.Fatalf("%v; the browser is Chromium, install it or name it in CHROMIUM", err)
	}
}

// await waits until an expression is true in the page.
func (b *browser) await(expression string) {
	b.t.Helper()
	b.run(chromedp.Poll(expression, nil, chromedp.WithPollingInterval(100*time.Millisecond)))
}

// ask evaluates an expression in the page.
func ask[T any](b *browser, expression string) (result T) {
	b.t.Helper()
	b.run(chromedp.Evaluate(expression, &result))
	return result
}

// dress sets the window width, the color scheme and the motion preference.
func (b *browser) dress(width int64, scheme, motion string) {
	b.t.Helper()
	b.run(
		emulation.SetDeviceMetricsOverride(width, 900, 2, false),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: motion},
		}),
	)
}

// picture saves a screenshot of the complete page to the directory SCREENSHOTS, if set.
func (b *browser) picture(name string) {
	b.t.Helper()
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		return
	}
	var image []byte
	b.run(chromedp.FullScreenshot(&image, 100))
	if err := os.WriteFile(filepath.Join(dir, name+".png"), image, 0o644); err != nil {
		b.t.Fatal(err)
	}
}
