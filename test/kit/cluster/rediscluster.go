package cluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/redis/go-redis/v9"
)

// ClusterCommands are the ACL rules of Landwaiter's user in a Redis Cluster, in addition
// to RedisCommands, as in docs/operate/redis.md.
const ClusterCommands = "+cluster|slots +asking"

const (
	// operator is a user with all permissions, who sets up and inspects servers.
	operator = "operator"
	// clusterSlots is the number of slots in a Redis Cluster.
	clusterSlots = 16384
	// clusterMasters is the minimum number of masters that can outvote a failed one.
	clusterMasters = 3
)

// RedisCluster is a Redis Cluster of three masters without replicas. If one fails, its
// entries are lost and the others continue.
type RedisCluster struct {
	// Masters are in slot order; each has a third of the slots.
	Masters []*Redis
	// URL is that of the user, with the password and all masters.
	URL string
}

// StartRedisCluster starts a cluster whose masters log below dir. If it fails, it leaves
// nothing running.
func StartRedisCluster(ctx context.Context, dir string) (*RedisCluster, error) {
	ports, err := FreePorts(2 * clusterMasters)
	if err != nil {
		return nil, err
	}
	c := &RedisCluster{}
	if err := c.start(ctx, dir, ports); err != nil {
		c.Kill()
		return nil, err
	}
	return c, nil
}

func (c *RedisCluster) start(ctx context.Context, dir string, ports []int) error {
	for i := range clusterMasters {
		master := newRedis(filepath.Join(dir, fmt.Sprintf("master-%d", i)), ports[2*i], RedisCommands+" "+ClusterCommands,
			"--cluster-enabled", "yes", "--cluster-port", fmt.Sprint(ports[2*i+1]), "--cluster-node-timeout", "1000",
			"--cluster-require-full-coverage", "no", "--user", operator, "on", ">"+redisPassword, "~*", "&*", "+@all")
		c.Masters = append(c.Masters, master)
		if err := master.Restart(ctx); err != nil {
			return err
		}
	}
	c.URL = strings.TrimSuffix(c.Masters[0].URL, "/0") + "?addr=" + c.Masters[1].Address() + "&addr=" + c.Masters[2].Address()
	return c.join(ctx, ports)
}

// join forms a cluster of the servers, and waits until each reports it as complete.
func (c *RedisCluster) join(ctx context.Context, ports []int) error {
	for i, master := range c.Masters {
		first, last := i*clusterSlots/clusterMasters, (i+1)*clusterSlots/clusterMasters-1
		if err := master.Do(ctx, "cluster", "addslotsrange", first, last); err != nil {
			return err
		}
		// Set distinct epochs: the cluster would resolve conflicts itself, but later.
		if err := master.Do(ctx, "cluster", "set-config-epoch", i+1); err != nil {
			return err
		}
		if i == 0 {
			continue
		}
		if err := c.Masters[0].Do(ctx, "cluster", "meet", "127.0.0.1", ports[2*i], ports[2*i+1]); err != nil {
			return err
		}
	}
	for _, master := range c.Masters {
		if err := master.Await(ctx, master.joined); err != nil {
			return err
		}
	}
	return nil
}

// joined checks that a server sees all masters and all slots.
func (r *Redis) joined(ctx context.Context) error {
	client := r.Operator()
	defer client.Close()
	info, err := client.ClusterInfo(ctx).Result()
	if err != nil {
		return fmt.Errorf("ask redis for its cluster: %w", err)
	}
	for _, want := range []string{"cluster_state:ok", fmt.Sprintf("cluster_size:%d", clusterMasters), fmt.Sprintf("cluster_slots_ok:%d", clusterSlots)} {
		if !strings.Contains(info, want+"\r\n") {
			return errors.New("the cluster is not " + want)
		}
	}
	return nil
}

// Operator returns a client for this server only, of a user with all permissions. Only servers
// of a RedisCluster or RedisSentinel have such a user.
func (r *Redis) Operator() *redis.Client {
	return redis.NewClient(operatorAt(r.port))
}

func operatorAt(port int) *redis.Options {
	return &redis.Options{Addr: loopback(port), Username: operator, Password: redisPassword, DisableIdentity: true, MaxRetries: -1, DialerRetries: 1}
}

// Refused returns the ACL denials of this server since it started.
func (r *Redis) Refused(ctx context.Context) ([]string, error) { return refusedAt(ctx, r.port) }

func refusedAt(ctx context.Context, port int) (refused []string, err error) {
	client := redis.NewClient(operatorAt(port))
	defer client.Close()
	entries, err := client.ACLLog(ctx, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("ask redis what it refused: %w", err)
	}
	for _, entry := range entries {
		refused = append(refused, fmt.Sprintf("%s: %s %s", entry.Username, entry.Reason, entry.Object))
	}
	return refused, nil
}

// Do runs one command as the operator.
func (r *Redis) Do(ctx context.Context, command ...any) error {
	client := r.Operator()
	defer client.Close()
	if err := client.Do(ctx, command...).Err(); err != nil {
		return fmt.Errorf("redis: %v: %w", command, err)
	}
	return nil
}

// Kill kills all servers.
func (c *RedisCluster) Kill() {
	for _, master := range c.Masters {
		if master.Process != nil {
			master.Kill()
		}
	}
}
