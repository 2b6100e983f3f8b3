//go:build nightly

package admission

import "testing"

func TestWhoMayDoWhatByTheServer(t *testing.T) {
	w := installed(t)
	for _, q := range w.questions(t) {
		w.answers(t, q)
	}
}
