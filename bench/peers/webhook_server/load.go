package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"sort"
	"sync"
	"time"
)

// load posts one body over and over, on so many connections, and prints how that went as one line of JSON. With a rate
// it posts so many per second and times each from when it was due; without, each connection posts as fast as it can.
func load(arguments []string) error {
	flags := flag.NewFlagSet("load", flag.ExitOnError)
	url := flags.String("url", "", "")
	authority := flags.String("ca", "", "")
	file := flags.String("body", "", "")
	connections := flags.Int("connections", 16, "")
	seconds := flags.Float64("seconds", 5, "")
	rate := flags.Float64("rate", 0, "")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	pem, err := os.ReadFile(*authority)
	if err != nil {
		return err
	}
	body, err := os.ReadFile(*file)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: roots},
		MaxIdleConnsPerHost: *connections,
	}}

	due := make(chan time.Time, *connections)
	go func() {
		defer close(due)
		start := time.Now()
		end := start.Add(time.Duration(*seconds * float64(time.Second)))
		for number := 0; ; number++ {
			at := time.Now()
			if *rate > 0 {
				at = start.Add(time.Duration(float64(number) / *rate * float64(time.Second)))
				time.Sleep(time.Until(at))
			}
			if at.After(end) {
				return
			}
			due <- at
		}
	}()

	var lock sync.Mutex
	var took []float64
	failed := 0
	var group sync.WaitGroup
	started := time.Now()
	for range *connections {
		group.Go(func() {
			for at := range due {
				if *rate == 0 {
					at = time.Now()
				}
				err := post(client, *url, body)
				spent := time.Since(at).Seconds() * 1000
				lock.Lock()
				took = append(took, spent)
				if err != nil {
					failed++
				}
				lock.Unlock()
			}
		})
	}
	group.Wait()
	elapsed := time.Since(started).Seconds()
	sort.Float64s(took)
	return json.NewEncoder(os.Stdout).Encode(map[string]float64{
		"per_s":  float64(len(took)) / elapsed,
		"p50_ms": took[len(took)/2],
		"p99_ms": took[len(took)*99/100],
		"failed": float64(failed),
		"count":  float64(len(took)),
	})
}

func post(client *http.Client, url string, body []byte) error {
	answer, err := client.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK || !bytes.Contains(said, []byte(`"patch"`)) {
		return fmt.Errorf("%d: %s", answer.StatusCode, said)
	}
	return nil
}
