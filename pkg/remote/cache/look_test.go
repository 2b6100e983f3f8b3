package cache

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestALineOfSettingsIsFoundByItsWholeName(t *testing.T) {
	const info = "# Memory\r\nused_memory:1\r\nmaxmemory:104857600\r\nmaxmemory_policy:noeviction\r\n"
	require.Equal(t, "104857600", setting(info, "maxmemory"))
	require.Equal(t, "noeviction", setting(info, "maxmemory_policy"))
	require.Empty(t, setting(info, "max"))
}

func TestARedisThatIsDownIsSaidSo(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1})
	defer func() { require.NoError(t, client.Close()) }()
	found := NewRedis(client, nil, "test", time.Now).Look(t.Context())
	require.Error(t, found.Err)
	require.False(t, errors.Is(found.Err, redis.Nil))
	require.Empty(t, found.Denied)
}
