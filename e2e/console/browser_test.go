package console

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var shots = flag.String("shots", "", "a directory for pictures of the views")

// patience is how long anything may take that has to happen in the end.
const patience = 2 * time.Minute

// page is a browser's page. What its console and its policy say against it fails the test.
type page struct {
	t    *testing.T
	ctx  context.Context
	base string

	mu       sync.Mutex
	findings []string
	allowed  []string // parts of messages that are expected
}

// browse opens a page of a browser of its own. Everything that it loads comes from base.
func browse(t *testing.T, base string) *page {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.Flag("no-zygote", true), chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("disable-background-networking", true), chromedp.WSURLReadTimeout(patience))
	allocated, cancelAllocated := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocated)
	t.Cleanup(func() {
		cancel()
		cancelAllocated()
	})
	p := &page{t: t, ctx: ctx, base: base}
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatalf("opening the browser: %v", err)
	}
	if err := chromedp.Listen(ctx, p.listen); err != nil {
		t.Fatal(err)
	}
	call(p, network.Enable, network.EnableParams{})
	call(p, runtime.Enable, cdp.Empty{})
	call(p, log.Enable, cdp.Empty{})
	p.size(1360, 900)
	return p
}

// call makes a call of the browser's protocol.
func call[P, R any](p *page, command cdp.Command[P, R], params P) {
	p.t.Helper()
	if _, err := chromedp.Call(p.ctx, command, params); err != nil {
		p.t.Fatalf("%s: %v", command.Method, err)
	}
}

func (p *page) listen(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		p.findings = append(p.findings, "exception: "+text(e.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning || e.Type == runtime.ConsoleAPICalledTypeAssert {
			p.findings = append(p.findings, "console: "+text(e.Args))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == "error" || e.Entry.Level == "warning" {
			p.findings = append(p.findings, "log: "+e.Entry.Text+" "+e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, p.base) && !strings.HasPrefix(e.Request.URL, "about:") {
			p.findings = append(p.findings, "a request to "+e.Request.URL)
		}
	}
}

// text is what a message of the browser says.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// expect lets messages pass that have a text.
func (p *page) expect(part string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.allowed = append(p.allowed, part)
}

// clean fails the test for everything that was found so far.
func (p *page) clean(what string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
next:
	for _, f := range p.findings {
		for _, part := range p.allowed {
			if strings.Contains(f, part) {
				continue next
			}
		}
		p.t.Errorf("%s: %s", what, f)
	}
	p.findings = nil
}

// open goes to an address.
func (p *page) open(address string) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, chromedp.Navigate(address)); err != nil {
		p.t.Fatalf("%s: %v", address, err)
	}
}

// until waits until an expression of the page is true.
func (p *page) until(what, expression string) {
	p.t.Helper()
	var last error
	deadline := time.Now().Add(patience)
	for {
		is, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		if err == nil && is {
			return
		}
		last = err
		if time.Now().After(deadline) {
			p.shoot("failed")
			p.t.Fatalf("%s: %v\n%s", what, last, p.text("body"))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// has waits until the text of an element has a part.
func (p *page) has(selector, part string) {
	p.t.Helper()
	p.until(selector+" has "+part, fmt.Sprintf("document.querySelector(%s)?.innerText?.includes(%s)", quote(selector), quote(part)))
}

// text is the text of an element.
func (p *page) text(selector string) string {
	out, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string](fmt.Sprintf("document.querySelector(%s)?.innerText ?? ''", quote(selector))))
	return out // empty when the page is gone
}

// click clicks at the element of a selector whose text, or label, has a part.
func (p *page) click(selector, part string) {
	p.t.Helper()
	p.until("click "+selector+" "+part, fmt.Sprintf(`(() => {
		const e = [...document.querySelectorAll(%s)].find((e) => (e.innerText + (e.ariaLabel ?? "")).includes(%s) && !e.disabled);
		e?.click();
		return e;
	})()`, quote(selector), quote(part)))
}

// fill writes a text into a field.
func (p *page) fill(selector, text string) {
	p.t.Helper()
	p.until("fill "+selector, fmt.Sprintf(`(() => {
		const e = document.querySelector(%s);
		if (!e) return false;
		e.value = %s;
		e.dispatchEvent(new Event("input", { bubbles: true }));
		e.dispatchEvent(new Event("change", { bubbles: true }));
		return true;
	})()`, quote(selector), quote(text)))
}

func quote(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}

// go to a view.
func (p *page) visit(view string) {
	p.t.Helper()
	p.until("going to "+view, "(location.hash = "+quote("#/"+view)+") && document.querySelector('main')")
}

// size sets the page's width and height.
func (p *page) size(width, height int64) {
	p.t.Helper()
	call(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 600})
}

// scheme sets what the system prefers.
func (p *page) scheme(name string) {
	p.t.Helper()
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
}

// shoot takes a picture, if pictures are wanted.
func (p *page) shoot(name string) {
	if *shots == "" {
		return
	}
	if b, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100)); err == nil {
		_ = os.MkdirAll(*shots, 0o755)
		_ = os.WriteFile(filepath.Join(*shots, name+".png"), b, 0o644)
	}
}

// submit fills in the form for signing in, which is there, and sends it.
func (p *page) submit(user, password string) {
	p.t.Helper()
	p.fill("input[name=user]", user)
	p.fill("input[name=password]", password)
	p.click("form button", "Sign in")
}

// signIn signs in by the form.
func (p *page) signIn(user, password string) {
	p.t.Helper()
	p.open(p.base + "/console/")
	p.submit(user, password)
	p.until("signed in", "document.querySelector('nav.views')")
}
