//go:build e2e || nightly

package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// Sights are the widths in pixels and the colour schemes in which [Tab.Look] looks at a page: a phone, a
// laptop and a desk.
func Sights() (widths []int64, schemes []string) {
	return []int64{390, 1280, 1920}, []string{"light", "dark"}
}

// axeRun runs axe-core, and returns what is serious or critical.
const axeRun = `axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"], resultTypes: ["violations"]}).then((r) => JSON.stringify(
	{Ran: r.passes.length + r.violations.length, Found: r.violations.filter((v) => v.impact === "serious" || v.impact === "critical").map((v) => v.id + ": " + v.help + ": " + v.nodes.map((n) => n.html.slice(0, 300) + " " + n.failureSummary).join("; "))}))`

// fewestRules is how many rules of axe-core have something to judge on any page.
const fewestRules = 10

// Look looks at the page in each sight: no text runs out of the screen, and axe-core finds nothing
// serious. It keeps a screenshot of each in folder, as NAME-WIDTH-SCHEME.png.
func (tab *Tab) Look(folder, name string) {
	tab.t.Helper()
	require.NoError(tab.t, os.MkdirAll(folder, 0o750))
	widths, schemes := Sights()
	for _, width := range widths {
		tab.Resize(width)
		for _, scheme := range schemes {
			call(tab, "set the scheme", emulation.SetEmulatedMedia,
				emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
			seen := fmt.Sprintf("%s-%d-%s", name, width, scheme)
			require.NoError(tab.t, os.WriteFile(filepath.Join(folder, seen+".png"), tab.picture(), 0o600))
			require.LessOrEqual(tab.t, tab.Overflow(), 0, "%s is wider than the screen", seen)
			tab.judge(seen)
		}
	}
}

// picture takes a screenshot. Chromium takes none of a window that it does not draw, and loses the
// request if that changes in between, so it is brought to the front and asked more than once.
func (tab *Tab) picture() (png []byte) {
	tab.t.Helper()
	suite.Eventually(tab.t, func(context.Context) (err error) {
		ctx, cancel := context.WithTimeout(tab.ctx, 30*time.Second)
		defer cancel()
		if _, err := chromedp.Call(ctx, page.BringToFront, cdp.Empty{}); err != nil {
			return fmt.Errorf("bring the tab to the front: %w", err)
		}
		if png, err = chromedp.Run(ctx, chromedp.FullScreenshot(100)); err != nil {
			return fmt.Errorf("take a screenshot: %w", err)
		}
		return nil
	})
	return png
}

// Resize makes the screen so many pixels wide.
func (tab *Tab) Resize(width int64) {
	tab.t.Helper()
	call(tab, "set the width", emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 900, DeviceScaleFactor: 1})
}

// Overflow returns by how many pixels the page is wider than the screen.
func (tab *Tab) Overflow() int {
	tab.t.Helper()
	return Evaluate[int](tab, "document.documentElement.scrollWidth - document.documentElement.clientWidth")
}

// judge has axe-core look at the page as it is. The DevTools protocol puts it there, past the policy
// of the page, which permits no such script.
func (tab *Tab) judge(seen string) {
	tab.t.Helper()
	if !Evaluate[bool](tab, "typeof axe === 'object'") {
		script, err := os.ReadFile(suite.MustTool(tab.t, suite.Axe))
		require.NoError(tab.t, err)
		Evaluate[chromedp.Void](tab, string(script))
	}
	var result struct {
		Ran   int
		Found []string
	}
	text := Evaluate[string](tab, axeRun)
	require.NoError(tab.t, json.Unmarshal([]byte(text), &result), text)
	require.Empty(tab.t, result.Found, "%s: axe-core", seen)
	require.GreaterOrEqual(tab.t, result.Ran, fewestRules, "%s: axe-core judged nothing", seen)
}

// Tree returns what a screen reader reads, a line each: the role, a colon and the name.
func (tab *Tab) Tree() string {
	tab.t.Helper()
	var b strings.Builder
	for _, node := range call(tab, "read the accessibility tree", accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes {
		if role, name := text(node.Role), text(node.Name); !node.Ignored && name != "" && role != "InlineTextBox" {
			fmt.Fprintf(&b, "%s: %s\n", role, name)
		}
	}
	return b.String()
}

func text(v *accessibility.Value) string {
	if v == nil {
		return ""
	}
	if plain, err := strconv.Unquote(string(v.Value)); err == nil {
		return plain
	}
	var plain string
	_ = json.Unmarshal([]byte(v.Value), &plain) // "" if it is no text
	return plain
}

// notOurs counts the elements of a page that no template of it makes.
const notOurs = `document.querySelectorAll("img, iframe, object, embed, base, style, b, animate, foreignObject, math, template, [style], [onload], ` +
	`[onerror], [onclick], script:not([src$='/assets/page.js'])").length`

// mostText is how long a document may get, whatever strangers write.
const mostText = 8 << 20

// RequireTame fails the test if hostile text is more than text in the page: if it ran a script, which sets
// window.hostile, made an element, has characters that nobody sees, or is too long.
func (tab *Tab) RequireTame(where string) {
	tab.t.Helper()
	require.True(tab.t, Evaluate[bool](tab, "typeof window.hostile === 'undefined'"), "%s ran a script", where)
	require.Zero(tab.t, Evaluate[int](tab, notOurs), "%s has an element of a stranger", where)
	document := tab.Document()
	require.Less(tab.t, len(document), mostText, where)
	for _, r := range document {
		require.True(tab.t, unicode.IsPrint(r) && r != '\u2800' || r == '\n' || r == '\t', "%s has %U", where, r)
	}
}

// Document returns the page as it is now.
func (tab *Tab) Document() string {
	tab.t.Helper()
	return Evaluate[string](tab, "document.documentElement.outerHTML")
}

// Texts returns the text of each element that a CSS selector finds, as it is read: with single spaces.
func (tab *Tab) Texts(selector string) []string {
	tab.t.Helper()
	return Evaluate[[]string](tab, fmt.Sprintf(`[...document.querySelectorAll(%q)].map((e) => e.textContent.replace(/\s+/g, " ").trim())`, selector))
}
