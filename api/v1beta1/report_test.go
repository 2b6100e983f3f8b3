package v1beta1_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

func TestOnlyNamesThatLandwaiterGivesAreItsReports(t *testing.T) {
	for name, about := range map[string]string{"landwaiter-running": "running", "landwaiter-running-1": "running", "landwaiter-running-9": "running",
		"landwaiter-denied":    "denied",
		"landwaiter-running-0": "", "landwaiter-running-01": "", "landwaiter-running-10": "", "landwaiter-running-x": "", "landwaiter-running-": "",
		"landwaiter-running1":   "",
		"landwaiter-running-1 ": "", "landwaiter-running-٣": "", "landwaiter-denied-1": "", "landwaiter-process": "", "polr": "", "": ""} {
		require.Equal(t, about, v1beta1.ReportAbout(name), name)
	}
}
