// Centrifugego does what the recipe centrifugo does, by the library of Centrifugo: it follows a channel, and prints the
// data of each publication, and a line that begins with "snapshot" at the beginning and if the server cannot recover.
package main

import (
	"flag"
	"fmt"
	"log"

	"github.com/centrifugal/centrifuge-go"
)

func follow(url, token, channel string) error {
	c := centrifuge.NewJsonClient(url, centrifuge.Config{Token: token})
	defer c.Close()
	ended := make(chan error, 1)
	c.OnConnecting(func(e centrifuge.ConnectingEvent) { log.Print("connecting: ", e.Code, " ", e.Reason) })
	c.OnDisconnected(func(e centrifuge.DisconnectedEvent) { ended <- fmt.Errorf("disconnected: %d %s", e.Code, e.Reason) })
	s, err := c.NewSubscription(channel, centrifuge.SubscriptionConfig{Recoverable: true})
	if err != nil {
		return err
	}
	s.OnSubscribed(func(e centrifuge.SubscribedEvent) {
		if !e.Recovered {
			fmt.Println("snapshot: what follows comes after offset", e.StreamPosition.Offset)
		}
	})
	s.OnPublication(func(e centrifuge.PublicationEvent) { fmt.Printf("%s\n", e.Data) })
	s.OnUnsubscribed(func(e centrifuge.UnsubscribedEvent) { ended <- fmt.Errorf("unsubscribed: %d %s", e.Code, e.Reason) })
	if err := s.Subscribe(); err != nil {
		return err
	}
	if err := c.Connect(); err != nil {
		return err
	}
	return <-ended
}

func main() {
	url := flag.String("url", "ws://127.0.0.1:8000/connection/websocket", "the server")
	token := flag.String("token", "", "the token of the connection")
	channel := flag.String("channel", "news", "the channel, which must have a history with recovery")
	flag.Parse()
	log.Fatal(follow(*url, *token, *channel))
}
