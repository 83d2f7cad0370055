//go:build browser

package page

import (
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// open opens the page and waits until it shows a flush.
func (b *browser) open(p *proxy) {
	b.t.Helper()
	b.run(chromedp.Navigate(p.URL + prefix))
	b.await(`document.querySelectorAll("#flush-rows tr").length > 1 &&
		document.querySelectorAll("#request-rows tr").length > 3`)
}

// tab presses the Tab key on a page without focus and returns the element with the focus, if it is
// visible.
func (b *browser) tab() string {
	b.t.Helper()
	b.run(chromedp.KeyEvent(kb.Tab))
	return ask[string](b,
		`document.activeElement.checkVisibility() &&
			getComputedStyle(document.activeElement).outlineStyle !== "none" ?
			document.activeElement.textContent : ""`)
}
