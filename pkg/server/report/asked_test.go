package report

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheEventOfAnOutageSaysWhomToAskUntilItIsOver(t *testing.T) {
	n := note{Registry: "r.example.com", Reason: "r.example.com refuses the connection", Contact: "#team-a", Remediation: "start the registry", Count: 1}
	require.Contains(t, n.text(), ". Ask: #team-a. To fix: start the registry")
	n.Answered = n.Last.AddDate(2025, 1, 1)
	require.NotContains(t, n.text(), "#team-a")
}
