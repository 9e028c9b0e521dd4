package articles

import (
	"context"
	"errors"
	"fmt"

	"github.com/redial-go/redial/bench/articles/timeline"
	"github.com/redial-go/redial/bench/internal/cli"
)

// letters is "bench sim -model letters".
type letters struct{ seconds, retries int }

func (o *letters) Flags(f *cli.Flags) {
	f.IntVar(&o.seconds, "seconds", 14, "how many seconds to draw")
	f.IntVar(&o.retries, "retries", 3, "how often each request is retried")
	f.Check(func() error {
		if o.seconds < 1 || o.seconds > 200 || o.retries < 1 {
			return errors.New("want 1 to 200 -seconds and at least one of -retries")
		}
		return nil
	})
}

func (o *letters) Run(_ context.Context, c *cli.Console) error {
	for _, r := range timeline.Rules(o.retries) {
		fmt.Fprintf(c.Out, "%s:\n", r.Name)
		if _, err := timeline.Draw(r.Policy, o.seconds).WriteTo(c.Out); err != nil {
			return err
		}
	}
	return nil
}
