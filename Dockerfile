# Pinned by version and content: an image that is built again is the same. `docker buildx imagetools inspect` shows a newer digest.
FROM node:24.11.1-bookworm-slim@sha256:48abc13a19400ca3985071e287bd405a1d99306770eb81d61202fb6b65cf0b57 AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY scripts/remove-stale-build.mjs scripts/finish-build.mjs scripts/
COPY src src
RUN npm run build && npm prune --omit=dev

FROM node:24.11.1-bookworm-slim@sha256:48abc13a19400ca3985071e287bd405a1d99306770eb81d61202fb6b65cf0b57
# A container has no other users, and Kubernetes and compose mount secrets readable for all.
ENV NODE_ENV=production ALLOW_READABLE_SECRETS=true
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY examples examples
# The dashboard serves them.
COPY docs/runbooks docs/runbooks
# `payouts` on PATH, for `docker compose exec worker payouts stats`. The journal must outlive the container: a volume is
# mounted at /data/journal, owned by the user that the process runs as.
RUN chmod +x dist/cli/main.js && ln -s /app/dist/cli/main.js /usr/local/bin/payouts \
  && mkdir -p /data/journal && chown -R node:node /data
# By number: Kubernetes can only check of a number that it is not root's (runAsNonRoot).
USER 1000:1000
ENV SEND_JOURNAL_DIR=/data/journal
VOLUME /data
EXPOSE 3000 3100 9464 9465 9466
ENTRYPOINT ["payouts"]
CMD ["worker"]
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.HEALTH_PORT||9464}/healthz`).then((r)=>process.exit(r.ok?0:1),()=>process.exit(1))"]
