package revocation

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// fetch asks a responder once.
func (p *Prefetcher) fetch(ctx context.Context, r request) ([]byte, error) {
	sent, err := http.NewRequestWithContext(ctx, r.method, r.address, strings.NewReader(r.body))
	if err != nil {
		return nil, errors.New("the address of the responder is malformed")
	}
	if r.contentType != "" {
		sent.Header.Set("Content-Type", r.contentType)
	}
	status, content, err := p.client.Read(sent)
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("the responder answered with status %d", status)
	}
	return content, nil
}
