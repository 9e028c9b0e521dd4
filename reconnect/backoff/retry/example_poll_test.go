package retry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/retry"
)

// refusal is an HTTP answer that is not 200. [backoff.Classify] asks it for its StatusCode.
type refusal int

func (r refusal) Error() string   { return http.StatusText(int(r)) }
func (r refusal) StatusCode() int { return int(r) }

// errPending says that the transaction is not in a block yet. To Classify it is an error like any other.
var errPending = errors.New("there is no receipt yet")

// receipt asks once for the block of a transaction.
func receipt(ctx context.Context, c *http.Client, url string) (block string, err error) {
	const call = `{"jsonrpc":"2.0","id":1,"method":"eth_getTransactionReceipt","params":["0xabc"]}`
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(call))
	if err != nil {
		return "", backoff.Permanent(err)
	}
	answer, err := c.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		err := error(refusal(answer.StatusCode))
		if wait, ok := backoff.ParseRetryAfter(answer.Header.Get("Retry-After"), time.Now()); ok {
			err = backoff.RetryAfter(err, wait)
		}
		return "", err
	}
	var body struct{ Result *struct{ BlockNumber string } }
	switch err := json.NewDecoder(answer.Body).Decode(&body); {
	case err != nil:
		return "", err
	case body.Result == nil:
		return "", errPending
	}
	return body.Result.BlockNumber, nil
}

// Poll an API until a transaction has its receipt. The API answers 429 if it is asked too often.
func ExampleLoop_poll() {
	var asked atomic.Int64
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch asked.Add(1) {
		case 1:
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":null}`)
		case 2, 3, 4:
			w.Header().Set("Retry-After", "0.01") // seconds; an API asks for one or more
			w.WriteHeader(http.StatusTooManyRequests)
		default:
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":{"blockNumber":"0x10"}}`)
		}
	}))
	defer api.Close()

	var block string
	poll := &retry.Loop{
		Policy:     &backoff.Exponential{Base: time.Millisecond}, // of a real API: base 1 s
		MaxElapsed: time.Minute,
		OnWait:     func(err error, wait time.Duration) { fmt.Println(err, wait >= 10*time.Millisecond) },
	}
	err := poll.Do(context.Background(), func(ctx context.Context) (err error) {
		block, err = receipt(ctx, api.Client(), api.URL)
		return err
	})
	fmt.Println(block, err, asked.Load())
	// Output:
	// there is no receipt yet false
	// Too Many Requests true
	// Too Many Requests true
	// Too Many Requests true
	// 0x10 <nil> 5
}
