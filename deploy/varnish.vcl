# Varnish before the service, or before a site of which it is a part. docs/edge.md says what it promises.
vcl 4.1;

backend prompt_retrieval {
  .host = "127.0.0.1";
  .port = "3000";
  .connect_timeout = 2s;
  # Longer than the service's own deadline of 5 s.
  .first_byte_timeout = 10s;
}

sub vcl_recv {
  # Only the API is offered: /healthz, /readyz, /docs and /openapi.json stay inside.
  if (req.url !~ "^/api/v1/") {
    return (synth(404));
  }
  unset req.http.Cookie;
  if (req.method != "GET" && req.method != "HEAD") {
    return (pass);
  }
  # By itself Varnish passes whatever has an Authorization header.
  return (hash);
}

sub vcl_hash {
  # An entry belongs to one Authorization value: it is part of the key, so that a mistake about Vary can't mix two.
  # The URL and the host are added by the built-in vcl_hash, which runs after this.
  hash_data(req.http.Authorization);
}

sub vcl_backend_response {
  # s-maxage and stale-while-revalidate became Varnish's ttl and grace. Nothing is kept beyond them.
  set beresp.keep = 0s;
  if (beresp.status != 200) {
    # The service is away, or the limit is reached: what is there stays, as long as it may.
    if (bereq.is_bgfetch && (beresp.status >= 500 || beresp.status == 429)) {
      return (abandon);
    }
    # Never stored; for a second such requests do not queue for each other. Fetched in the background, a refusal takes
    # the place of the stale answer: that is how a revocation arrives.
    set beresp.ttl = 1s;
    set beresp.grace = 0s;
    set beresp.uncacheable = true;
  }
  return (deliver);
}

sub vcl_deliver {
  if (obj.hits > 0) {
    set resp.http.X-Cache = "HIT";
  } else {
    set resp.http.X-Cache = "MISS";
  }
}
