//go:build e2e || nightly

// Package browser runs Chromium as a person uses it, and keeps every byte that it receives.
// What it opens passes a [Recorder], a proxy: the browser itself forgets answers when it leaves
// a page.
package browser

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// Options configure a [Browser].
type Options struct {
	// Hosts are names that resolve to 127.0.0.1.
	Hosts []string
	// Recorder records what the browser receives; nil connects it directly.
	Recorder *Recorder
}

// Browser is a running Chromium that ends with the test.
type Browser struct{ ctx context.Context } //nolint:containedctx // chromedp knows a browser by its context

// Start starts Chromium. CHROMIUM is its path, if it is not where Debian and Google install it.
// The test fails if there is none.
func Start(t testing.TB, o Options) *Browser {
	t.Helper()
	path, err := program()
	require.NoError(t, err)
	flags := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()), //nolint:gocritic // an array
		chromedp.WSURLReadTimeout(suite.Patience), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-features", "Translate,NetworkTimeServiceQuerying"), chromedp.Flag("no-pings", true))
	if len(o.Hosts) > 0 {
		flags = append(flags, chromedp.Flag("host-resolver-rules", "MAP "+strings.Join(o.Hosts, " 127.0.0.1, MAP ")+" 127.0.0.1"))
	}
	if o.Recorder != nil { // Chromium asks no proxy for loopback by default
		flags = append(flags, chromedp.ProxyServer("http://"+o.Recorder.address), chromedp.Flag("proxy-bypass-list", "<-loopback>"))
	}
	allocator, end := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), flags...)
	t.Cleanup(end)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	require.NoError(t, chromedp.Do(ctx))
	return &Browser{ctx}
}

// program finds Chromium.
func program() (string, error) {
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "google-chrome"} {
		if name == "" {
			continue
		}
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("neither chromium nor google-chrome is installed (Debian: apt-get install chromium), and CHROMIUM=%q is no program",
		os.Getenv("CHROMIUM"))
}

// Tab is one tab of a browser.
type Tab struct {
	t   testing.TB
	ctx context.Context //nolint:containedctx // chromedp knows a tab by its context

	mutex sync.Mutex
	// complaints are errors of scripts, violations of the policy of the page, and what else the
	// console shows as an error; asked are the hosts that were asked for anything.
	complaints []string
	asked      map[string]bool
}

// Tab opens an empty tab in a window of its own, so that no other hides it.
func (b *Browser) Tab(t testing.TB) *Tab {
	t.Helper()
	tab := &Tab{t: t, asked: map[string]bool{}}
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithListener(tab.hear), chromedp.WithNewWindow(true))
	t.Cleanup(cancel)
	tab.ctx = ctx
	require.NoError(t, chromedp.Do(ctx))
	return tab
}

// hear keeps what a person who looks at the console sees.
func (tab *Tab) hear(event any) {
	tab.mutex.Lock()
	defer tab.mutex.Unlock()
	complain := func(format string, args ...any) {
		tab.complaints = append(tab.complaints, fmt.Sprintf(format, args...))
	}
	switch e := event.(type) {
	case *log.EventEntryAdded:
		if e.Entry.Source == log.EntrySourceNetwork { // what answers have which status, tests check themselves
			return
		}
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			complain("%s: %s (%s)", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	case *runtime.EventExceptionThrown:
		complain("a script failed: %s %s", e.ExceptionDetails.Text, description(e.ExceptionDetails.Exception))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			var said []string
			for _, a := range e.Args {
				said = append(said, cmp.Or(a.Description, string(a.Value)))
			}
			complain("a script said %s", strings.Join(said, " "))
		}
	case *network.EventRequestWillBeSent:
		scheme, rest, _ := strings.Cut(e.Request.URL, ":")
		host, _, _ := strings.Cut(strings.TrimPrefix(rest, "//"), "/")
		tab.asked[scheme+"://"+host] = true
	}
}

func description(o *runtime.RemoteObject) string {
	if o == nil {
		return ""
	}
	return o.Description
}

// Complaints returns what the console has shown as an error or a warning since the last call.
func (tab *Tab) Complaints() []string {
	tab.mutex.Lock()
	defer tab.mutex.Unlock()
	found := tab.complaints
	tab.complaints = nil
	return found
}

// Asked returns the origins that the tab has asked for anything.
func (tab *Tab) Asked() (origins []string) {
	tab.mutex.Lock()
	defer tab.mutex.Unlock()
	for origin := range tab.asked {
		origins = append(origins, origin)
	}
	return origins
}

// within bounds one step.
func (tab *Tab) within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(tab.ctx, suite.Patience)
}

// do takes one step in the tab.
func do[T any](tab *Tab, what string, action chromedp.Action[T]) T {
	tab.t.Helper()
	ctx, cancel := tab.within()
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	require.NoError(tab.t, err, what)
	return value
}

// call sends a command of the DevTools protocol.
func call[P, R any](tab *Tab, what string, command cdp.Command[P, R], params P) R {
	tab.t.Helper()
	ctx, cancel := tab.within()
	defer cancel()
	value, err := chromedp.Call(ctx, command, params)
	require.NoError(tab.t, err, what)
	return value
}

// Open enters an address, and returns the status of the answer.
func (tab *Tab) Open(address string) int {
	tab.t.Helper()
	return int(do(tab, "open "+address, chromedp.NavigateResponse(address)).Status)
}

// Click clicks on what a CSS selector finds first, and waits for the page that it leads to.
func (tab *Tab) Click(selector string) int {
	tab.t.Helper()
	ctx, cancel := tab.within()
	defer cancel()
	answer, err := chromedp.RunResponse(ctx, chromedp.Click(chromedp.CSS(selector)))
	require.NoError(tab.t, err, "click on %s", selector)
	return int(answer.Status)
}

// Type enters text where the focus is, as a keyboard does: "\t" is the tab key.
func (tab *Tab) Type(text string) {
	tab.t.Helper()
	do(tab, "type", chromedp.KeyEvent(text))
}

// Fill focuses a field, and replaces what is in it.
func (tab *Tab) Fill(selector, text string) {
	tab.t.Helper()
	do(tab, "fill "+selector, chromedp.SetValue(chromedp.CSS(selector), text))
}

// Evaluate evaluates a JavaScript expression in a tab, and waits for its promise.
func Evaluate[T any](tab *Tab, expression string) T {
	tab.t.Helper()
	return do(tab, expression[:min(len(expression), 200)], chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// Eventually waits until an expression is true, also while the page is replaced by another.
func (tab *Tab) Eventually(expression string) {
	tab.t.Helper()
	suite.Eventually(tab.t, func(context.Context) error {
		ctx, cancel := context.WithTimeout(tab.ctx, 30*time.Second)
		defer cancel()
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool](expression, chromedp.EvalAwaitPromise))
		if err == nil && !ok {
			err = fmt.Errorf("%s is not true in %s", expression, tab.Address())
		}
		return err
	})
}

// Address returns the address of the page that the tab shows.
func (tab *Tab) Address() string {
	tab.t.Helper()
	return do(tab, "read the address", chromedp.Location())
}

// Close closes the tab.
func (tab *Tab) Close() {
	tab.t.Helper()
	require.NoError(tab.t, chromedp.Cancel(tab.ctx))
}

// Opened returns the addresses of all tabs and windows of the browser.
func (b *Browser) Opened(t testing.TB) (addresses []string) {
	t.Helper()
	all, err := chromedp.CallBrowser(b.ctx, target.GetTargets, target.GetTargetsParams{})
	require.NoError(t, err)
	for _, info := range all.TargetInfos {
		if info.Type == "page" {
			addresses = append(addresses, info.URL)
		}
	}
	return addresses
}
