package provider

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// A phase without a timeout could be held open for ever by one client.
func TestEveryPhaseOfAConnectionEnds(t *testing.T) {
	w := serve(t, byRepository, nil)
	for name, server := range map[string]*http.Server{"edge": w.server.edge.Server, "health": w.server.health.Server, "metrics": w.server.scrape.Server} {
		require.Positive(t, server.ReadHeaderTimeout, "%s: handshake and header", name)
		require.Positive(t, server.ReadTimeout, "%s: body", name)
		require.Positive(t, server.WriteTimeout, "%s: answer", name)
		require.Positive(t, server.IdleTimeout, "%s: between requests", name)
		require.Positive(t, server.MaxHeaderBytes, "%s: size of the header", name)
	}
}
