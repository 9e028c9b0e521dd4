package articles

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redial-go/redial/bench/internal/cli"

	"github.com/redial-go/redial/bench/articles/contention"
)

func simulateContention(ctx context.Context, c *cli.Console, args []string) error {
	flags := cli.NewFlags()
	sizes := flags.String("n", "100", "how many clients: numbers separated by commas, or all for 10, 20 ... 190")
	policies := flags.String("policy", "none,exponential,equal,full,decorrelated", "the policies to simulate, separated by commas")
	runs := flags.Int("reps", 100, "runs of which each line is the mean")
	seed := flags.Uint64("seed", 1, "seed of the first run; the next runs count up")
	if err := cli.Parse(c, flags, args); err != nil {
		return err
	}
	clients, err := contentionSizes(*sizes)
	if err != nil {
		return cli.Usage(err)
	}
	if *runs < 1 {
		return cli.Usagef("want at least one of -reps, not %d", *runs)
	}
	var chosen []contention.Policy
	for name := range strings.SplitSeq(*policies, ",") {
		p, err := contention.Find(name)
		if err != nil {
			return cli.Usage(err)
		}
		chosen = append(chosen, p)
	}
	progress := cli.NewProgress(c, "simulate", len(clients)*len(chosen))
	defer progress.End()
	for _, n := range clients {
		for _, p := range chosen {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			y, err := contention.Mean(p.Policy, n, *runs, *seed)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.Out, "n=%d policy=%s time_ms=%.0f calls=%.1f reps=%d\n", n, p.Name, y.Time.Seconds()*1000, y.Calls, *runs)
			progress.Add(1)
		}
	}
	return nil
}

func contentionSizes(text string) ([]int, error) {
	var sizes []int
	if text == "all" {
		for n := 10; n <= 190; n += 10 {
			sizes = append(sizes, n)
		}
		return sizes, nil
	}
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("want numbers of clients as -n, not %q", word)
		}
		sizes = append(sizes, n)
	}
	return sizes, nil
}
