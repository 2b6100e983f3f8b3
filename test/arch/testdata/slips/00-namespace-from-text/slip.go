// Package slip takes the namespace from an image's text: whoever writes the text would choose whose rules count.
package slip

import (
	"context"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
)

func decide(ctx context.Context, decider *service.Decider, ref image.Reference, text string) verify.Result {
	namespace, _, _ := strings.Cut(text, "/")
	return decider.Verify(ctx, namespace, ref) // want "cannot use namespace"
}
