package docs

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/lint"
)

// onAnyDay runs a test with a clock of its own: now, in 60 and in 400 days, and in ten years.
func onAnyDay(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	for _, days := range []int{0, 60, 400, 3653} {
		day := time.Now().AddDate(0, 0, days)
		t.Run(strings.TrimSpace(name+" in "+strconv.Itoa(days)+" days"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(day)) // takes no time: the clock of a bubble begins in 2000
				test(t)
			})
		})
	}
}

func TestSamplesHaveNoFindingsOnAnyDay(t *testing.T) {
	onAnyDay(t, "", func(t *testing.T) {
		report, err := lint.Check(t.Context(), "", []string{filepath.Join(root, "config/samples")}, nil, conditions.Check)
		require.NoError(t, err)
		for _, f := range report.Findings {
			require.Contains(t, []string{string(policy.ReasonPublishedKey), string(policy.ReasonPlaceholder)}, f.ID, f.String())
		}
	})
}

// passed is a day in the past: examples may have dates up to it.
const passed = "2026-11-29"

// whenever are later dates, which readers may meet on any day.
func whenever() []string {
	return []string{
		never[:len(time.DateOnly)],
		"2026-12-08", "2028-03-31", // docs/howto/notary-v1.md is true before and after them
	}
}

// A reader of any day finds no date that was to come when it was written.
func TestDatesOfPagesSamplesAndChartsDoNotPass(t *testing.T) {
	numbers := regexp.MustCompile(`\b20[0-9]{2}-[01][0-9]-[0-3][0-9]`)
	words := regexp.MustCompile(`\b(?:[0-9]{1,2} )?(?:January|February|March|April|May|June|July|August|September|October|November|December) 20[0-9]{2}\b`)
	files := pages(t)
	for _, folder := range []string{"charts", "config", "library"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, folder), func(name string, entry fs.DirEntry, err error) error {
			if !entry.IsDir() && filepath.Ext(name) != ".go" {
				relative, _ := filepath.Rel(root, name)
				files = append(files, relative)
			}
			return err
		}))
	}
	for _, name := range files {
		text := read(t, name)
		found := numbers.FindAllString(text, -1)
		for _, date := range words.FindAllString(text, -1) {
			at, err := time.Parse("2 January 2006", date)
			if err != nil { // of a month
				at, err = time.Parse("January 2006", date)
			}
			require.NoError(t, err)
			found = append(found, at.Format(time.DateOnly))
		}
		for _, date := range found {
			require.True(t, date <= passed || slices.Contains(whenever(), date),
				"%s has %s, which passes: leave it out, write an earlier date into examples, or let readers fill it in", name, date)
		}
	}
}
