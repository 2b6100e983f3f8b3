package docs

import (
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// anchorsOf returns the anchors of a page: those that it writes, and those that GitHub makes of
// headings.
func anchorsOf(text string) map[string]bool {
	found := map[string]bool{}
	for _, a := range regexp.MustCompile(`<a id="([^"]+)"`).FindAllStringSubmatch(text, -1) {
		found[a[1]] = true
	}
	text = regexp.MustCompile("(?s)```.*?```").ReplaceAllString(text, "")
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		title := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(heading[1], "$1")
		title = regexp.MustCompile(`[^\p{L}\p{N}_ -]`).ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
		found[strings.ReplaceAll(title, " ", "-")] = true
	}
	return found
}

func TestLinksLeadToHeadingsAndFieldsThatAreThere(t *testing.T) {
	anchors := map[string]map[string]bool{}
	for _, name := range pages(t) {
		anchors[name] = anchorsOf(read(t, name))
	}
	require.True(t, anchors["docs/reference/verifier.md"]["verifier-spec-cosign-keys-inline"], "pages link to fields by this form")
	for _, name := range pages(t) {
		for _, link := range regexp.MustCompile(`\]\(([^)#:\s]*)#([^)]+)\)`).FindAllStringSubmatch(read(t, name), -1) {
			target := name
			if link[1] != "" {
				target = path.Join(path.Dir(name), link[1])
			}
			if there, ok := anchors[target]; ok {
				require.True(t, there[link[2]] || regexp.MustCompile(`-\d+$`).MatchString(link[2]), "%s links to %s#%s, which is not there", name, link[1], link[2])
			}
		}
	}
}
