package lint

import (
	"context"

	"github.com/landwaiter/landwaiter/pkg/configdir"
	"github.com/landwaiter/landwaiter/pkg/policy"
)

// Definitions returns what an API server would refuse of declarations by the definitions
// of the resources, without compiling them.
func Definitions(ctx context.Context, declarations []configdir.Declaration) ([]Finding, error) {
	schemas, err := newSchemas()
	if err != nil {
		return nil, err
	}
	c := checker{wrong: map[policy.ObjectRef]bool{}}
	for _, d := range declarations {
		if d.Ignored {
			continue
		}
		found, err := schemas.check(ctx, d)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			c.add(d, f)
		}
	}
	return c.report.Findings, nil
}
