package revocation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// fetch asks a responder once.
func (p *Prefetcher) fetch(ctx context.Context, r request) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	sent, err := http.NewRequestWithContext(ctx, r.method, r.address, strings.NewReader(r.body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	if r.contentType != "" {
		sent.Header.Set("Content-Type", r.contentType)
	}
	got, err := p.client.Do(sent)
	if err != nil {
		return nil, errors.New("the responder cannot be reached") // its resolved addresses are not for team devs
	}
	defer func() { _ = got.Body.Close() }() // it was read whole, or it is not needed
	if got.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the responder answered with status %d", got.StatusCode)
	}
	content, err := io.ReadAll(http.MaxBytesReader(nil, got.Body, maxResponse))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, fmt.Errorf("the answer is larger than %d bytes", maxResponse)
	}
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	return content, nil
}
