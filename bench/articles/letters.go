package articles

import (
	"context"
	"fmt"
	"time"

	"github.com/redial-go/redial/bench/internal/cli"

	"github.com/redial-go/redial/bench/articles/timeline"
	"github.com/redial-go/redial/reconnect/backoff"
)

func simulateLetters(_ context.Context, c *cli.Console, args []string) error {
	flags := cli.NewFlags()
	seconds := flags.Int("seconds", 14, "how many seconds to draw")
	retries := flags.Int("retries", 3, "how often each request is retried")
	if err := cli.Parse(c, flags, args); err != nil {
		return err
	}
	if *seconds < 1 || *seconds > 200 || *retries < 1 {
		return cli.Usagef("want 1 to 200 -seconds and at least one of -retries")
	}
	for _, p := range []struct {
		name   string
		policy backoff.Policy
	}{
		{"immediate retries", &backoff.Exponential{Base: -1}},
		{"pauses of 1, 2, 4 s", &backoff.Exponential{Base: time.Second, Cap: -1, Jitter: backoff.JitterNone}},
	} {
		fmt.Fprintf(c.Out, "%s:\n", p.name)
		if _, err := timeline.Draw(backoff.Limit(p.policy, *retries, 0), *seconds).WriteTo(c.Out); err != nil {
			return err
		}
	}
	return nil
}
