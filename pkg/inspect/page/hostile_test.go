//go:build e2e

package page

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/browser"
)

func TestHostileTextInARealBrowserRunsNothingAndStaysInItsPlace(t *testing.T) {
	b := browser.Start(t, browser.Options{})
	for name, text := range hostileTexts() {
		t.Run(name, func(t *testing.T) {
			s, _ := served(t, shop(text))
			tab := b.Tab(t)
			defer tab.Close()
			tab.Resize(390)
			tab.Open(s.Address("/"))
			base, addresses := "http://"+s.guard.host+s.guard.below, views(text)
			if len(text) > maxName { // names are shorter than what evidence and files say
				addresses = []string{"/image?namespace=shop&image=r.example.com%2Fweb%3A1"}
			}
			for _, address := range addresses {
				require.Equal(t, http.StatusOK, tab.Open(base+address), address)
				tab.Eventually(`!document.querySelector("[data-pending]")`)
				requireTame(t, tab, address)
			}
			tab.Open(base + "/whatif?namespace=shop")
			tab.Fill("#text", "kind: VerificationPolicy")
			require.Equal(t, http.StatusOK, tab.Click("main form button"))
			requireTame(t, tab, "an answer of what if")
			require.Empty(t, tab.Complaints(), "the policy of the page refused something, so it was more than text")
		})
	}
}

// maxName is how long a name gets that a report or the API server has.
const maxName = 1024

// requireTame fails if text is more than text, or too wide for a phone.
func requireTame(t *testing.T, tab *browser.Tab, where string) {
	t.Helper()
	tab.RequireTame(where)
	require.LessOrEqual(t, tab.Overflow(), 0, "%s is wider than a phone", where)
}
