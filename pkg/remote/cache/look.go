package cache

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// lookKey is in no namespace: a namespace has no underscore.
const lookKey = "landwaiter:_look:probe"

// Condition is what Redis lets Landwaiter do.
type Condition struct {
	// Err says why Redis does not answer, nil if it does.
	Err error
	// Denied are the commands that Landwaiter needs and its user may not send.
	Denied []string
	// Memory is false if the user may not ask for the settings of memory. Full is the policy of
	// a Redis that refuses writes once it is full.
	Memory bool
	Full   string
}

// Look tries each command that Landwaiter sends, on a key of its own.
func (r *Redis) Look(ctx context.Context) Condition {
	ctx, cancel := context.WithTimeout(ctx, lookBudget)
	defer cancel()
	var found Condition
	for _, try := range []struct {
		command string
		send    func() error
	}{
		{"SET", func() error { return r.client.Set(ctx, lookKey, "", lookLifetime).Err() }},
		{"GETRANGE", func() error { return r.client.GetRange(ctx, lookKey, 0, 1).Err() }},
		{"SCAN", func() error { return r.client.Scan(ctx, 0, lookKey, 1).Err() }},
		{"UNLINK", func() error { return r.client.Unlink(ctx, lookKey).Err() }},
	} {
		err := try.send()
		switch {
		case err == nil || redis.HasErrorPrefix(err, "OOM"):
		case redis.HasErrorPrefix(err, "NOPERM"):
			found.Denied = append(found.Denied, try.command)
		default:
			found.Err = fmt.Errorf("send %s: %w", try.command, err)
			return found
		}
	}
	settings, err := r.client.Info(ctx, "memory").Result()
	if err != nil {
		return found
	}
	found.Memory = true
	limit, policy := setting(settings, "maxmemory"), setting(settings, "maxmemory_policy")
	if limit != "0" && policy == "noeviction" {
		found.Full = policy
	}
	return found
}

// setting returns a line of INFO.
func setting(text, name string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			return value
		}
	}
	return ""
}
