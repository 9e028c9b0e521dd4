// Package articles has the commands that reproduce what articles say about retries.
// ARTICLES.md has a row for each of their figures.
package articles

import "github.com/redial-go/redial/bench/internal/cli"

// Commands are the commands of "bench".
func Commands() []cli.Command {
	return []cli.Command{
		{Name: "storm", Summary: "a retry storm on real sockets: a server that is stopped for a while, and clients that try again", Example: "-policy redial -stop 5s", New: cli.New[realStorm]},
		{Name: "waits", Summary: "draw what policies wait: by number of the retry and by time, linear and logarithmic", Example: "-policy full:base=500ms,cap=15s,grpc -svg waits.svg", New: cli.New[drawnWaits]},
	}
}

// Models are the models of "bench sim".
func Models() []cli.Command {
	return []cli.Command{
		{Name: "queueing", Summary: "the article \"Good Retry, Bad Retry\": retries, backoff, budgets and breakers before one server with a queue", Example: "-scenario mfs -rps 2000 -timeout 250ms -cpus 40 -budget 10%", New: cli.New[simulatedQueue]},
		{Name: "tiers", Summary: "the incident of the article \"Good Retry, Bad Retry\": services that call one another and retry, users that press the button again, and the manual way out", Example: "-scenario incident -strategy retry+admission -every 10s", New: cli.New[simulatedTiers]},
		{Name: "letters", Summary: "the letter diagram of the article \"Good Retry, Bad Retry\": a failing request each second, retried three times", Example: "-retries 3", New: cli.New[letters]},
		{Name: "storm", Summary: "a retry storm: a server that is stopped for a while, and clients that try again", Example: "-policy simple,redial -stop 5s", New: cli.New[simulatedStorm]},
		{Name: "aws", Summary: "AWS's contention model: clients that must each win one write on one row", Example: "-n 50,100", New: cli.New[contend]},
		{Name: "ratelimit", Summary: "an API that answers calls beyond its rate with 429, with and without Retry-After", Example: "-policy redial,full:base=1s -svg limit.svg", New: cli.New[simulatedLimit]},
	}
}
