# Varnish in front of the service, or in front of a site that includes the service. docs/edge.md describes what the cache
# guarantees.
vcl 4.1;

backend prompt_retrieval {
  .host = "127.0.0.1";
  .port = "3000";
  .connect_timeout = 2s;
  # This timeout is longer than the 50 s that a request can wait for a change.
  .first_byte_timeout = 60s;
}

sub vcl_recv {
  # Only the API is public: /healthz, /readyz, /docs and /openapi.json stay internal.
  if (req.url !~ "^/api/v1/") {
    return (synth(404));
  }
  unset req.http.Cookie;
  if (req.method != "GET" && req.method != "HEAD") {
    return (pass);
  }
  # A request that waits for a change goes to the service, not to the cache.
  if (req.http.Prefer ~ "(?i)\bwait\b" && req.http.If-None-Match) {
    return (pass);
  }
  # By default Varnish does not cache requests with an Authorization header.
  return (hash);
}

sub vcl_hash {
  # The cache key contains the Authorization value, so that callers never share an entry, even if Vary is ignored. The
  # built-in vcl_hash, which runs next, adds the URL and the host.
  hash_data(req.http.Authorization);
}

sub vcl_backend_response {
  # Varnish has set ttl from s-maxage and grace from stale-while-revalidate. Varnish keeps no entry longer.
  set beresp.keep = 0s;
  if (beresp.status != 200) {
    # If the service is unavailable or the rate limit is reached, a stale entry stays until its grace ends.
    if (bereq.is_bgfetch && (beresp.status >= 500 || beresp.status == 429)) {
      return (abandon);
    }
    # Varnish does not store errors. For one second after an error, requests for the same entry do not wait for each
    # other. An error that Varnish fetches in the background replaces the stale entry, so that a revocation takes effect.
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
